// SPDX-License-Identifier: Apache-2.0
// Writes a file so that a reader sees the old content or the new, never a part of either.
#pragma once

#include <tessera/core/error.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace tessera {

/// Makes `path` hold exactly `content`: its folder is made, a file beside it is written, then renamed over it. If that
/// fails, file_error says why, the file that was there before is untouched and nothing is left beside it.
inline void write_file(const std::filesystem::path& path, std::string_view content) {
  const auto refuse = [&](const std::string& step, const std::string& reason) {
    throw file_error{"cannot " + step + " " + path.string() + ": " + reason};
  };
  std::error_code failure;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
  if (failure) refuse("make the folder of", failure.message());

  std::filesystem::path beside = path;
  beside += ".part" + std::to_string(::getpid());
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  if (file == nullptr) refuse("write", std::generic_category().message(errno));
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size() &&
                       std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int write_errno = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) {
    const int code = written ? errno : write_errno;
    std::filesystem::remove(beside, failure);
    refuse("write", std::generic_category().message(code));
  }
  std::filesystem::rename(beside, path, failure);
  if (failure) {
    const std::string reason = failure.message();
    std::filesystem::remove(beside, failure);
    refuse("rename a new file to", reason);
  }
}

}  // namespace tessera
