// SPDX-License-Identifier: Apache-2.0
// A peer in a process of its own, which measures when it is asked: it takes turns with us in one run.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace bench {

/// Runs a Python script that answers each line it is given with a number; nothing where it cannot run.
class served_peer {
 public:
  /// `needs` is the Python module without which the peer is absent. The first of python3 and /usr/bin/python3 that has
  /// it runs the script.
  served_peer(const std::string& script, const std::string& needs) {
    for (const char* python : {"python3", "/usr/bin/python3"}) {
      if (std::system((std::string(python) + " -c 'import " + needs + "' >/dev/null 2>&1").c_str()) != 0) continue;
      start(std::string("exec ") + python + " '" + script + "'");
      return;
    }
  }
  ~served_peer() {
    if (!present()) return;
    std::fclose(questions_);
    std::fclose(answers_);
    ::waitpid(child_, nullptr, 0);
  }
  served_peer(const served_peer&) = delete;
  served_peer& operator=(const served_peer&) = delete;

  bool present() const { return questions_ != nullptr; }

  std::optional<double> ask(const std::string& question) {
    if (!present()) return std::nullopt;
    double answer = 0;
    if (std::fprintf(questions_, "%s\n", question.c_str()) < 0 || std::fflush(questions_) != 0 ||
        std::fscanf(answers_, "%lf", &answer) != 1)
      return std::nullopt;
    return answer;
  }

 private:
  void start(const std::string& command) {
    int to_child[2], from_child[2];
    if (::pipe(to_child) != 0 || ::pipe(from_child) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to_child[0], 0);
      ::dup2(from_child[1], 1);
      for (int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(end);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    questions_ = ::fdopen(to_child[1], "w");
    answers_ = ::fdopen(from_child[0], "r");
  }

  int child_ = -1;
  std::FILE* questions_ = nullptr;
  std::FILE* answers_ = nullptr;
};

}  // namespace bench
