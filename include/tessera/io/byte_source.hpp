// SPDX-License-Identifier: Apache-2.0
// The bytes of a file in order, decompressed if it is a gzip file, with every fault an error that names the file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#if TESSERA_HAS_ZLIB
#include <zlib.h>
#endif

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>

namespace tessera::io {

namespace detail {

[[noreturn]] inline void throw_file(const std::filesystem::path& file, const std::string& field,
                                    const std::string& expected, const std::string& found) {
  throw file_error("io: " + file.string() + ": " + field + ": expected " + expected + ", found " + found);
}

inline std::string bytes_text(std::uint64_t count) { return number_text(count) + (count == 1 ? " byte" : " bytes"); }

class plain_file {
 public:
  explicit plain_file(const std::filesystem::path& path) : path_(path) {
    std::error_code failure;
    const auto status = std::filesystem::status(path_, failure);
    if (!std::filesystem::exists(status)) throw_file(path_, "file", "a readable file", "nothing of that name");
    if (!std::filesystem::is_regular_file(status)) throw_file(path_, "file", "a regular file", "something else");
    size_ = std::filesystem::file_size(path_, failure);
    file_.reset(std::fopen(path_.c_str(), "rb"));
    if (failure || !file_) throw_file(path_, "file", "a readable file", "one that does not open");
  }

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  std::size_t read(std::uint8_t* to, std::size_t count) {
    const std::size_t done = std::fread(to, 1, count, file_.get());
    if (done < count && std::ferror(file_.get()) != 0) throw_file(path_, "file", "readable bytes", "a read error");
    return done;
  }

  bool starts_with(std::uint8_t first, std::uint8_t second) {
    std::array<std::uint8_t, 2> start{};
    const std::size_t done = read(start.data(), start.size());
    std::rewind(file_.get());
    return done == start.size() && start[0] == first && start[1] == second;
  }

 private:
  struct close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<std::FILE, close> file_;
};

#if TESSERA_HAS_ZLIB
/// Inflates gzip members one after the other. zlib's own file functions do not notice a checksum that is cut off.
class gzip_reader {
 public:
  explicit gzip_reader(plain_file& file) : file_(file) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail("memory for decompression", "none");
  }
  gzip_reader(const gzip_reader&) = delete;
  gzip_reader& operator=(const gzip_reader&) = delete;
  ~gzip_reader() { inflateEnd(&stream_); }

  /// Reads between 1 and `count` bytes, or 0 at the end of the last member.
  std::size_t read_some(std::uint8_t* to, std::size_t count) {
    stream_.next_out = to;
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(count, std::size_t{1} << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) refill();
      if (stream_.avail_in == 0 && at_end_of_member_) return 0;
      if (stream_.avail_in == 0) fail("whole data", "an early end");
      if (at_end_of_member_) inflateReset(&stream_);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END)
        fail("intact data", stream_.msg != nullptr ? stream_.msg : "damaged data");
      at_end_of_member_ = code == Z_STREAM_END;
    }
    return room - stream_.avail_out;
  }

 private:
  void refill() {
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(file_.read(input_.data(), input_.size()));
  }
  [[noreturn]] void fail(const char* expected, const char* found) {
    throw_file(file_.path(), "gzip stream", expected, found);
  }

  plain_file& file_;
  z_stream stream_{};
  std::array<std::uint8_t, 1 << 16> input_{};
  bool at_end_of_member_ = false;
};
#else
struct gzip_reader {
  explicit gzip_reader(plain_file& file) {
    throw_file(file.path(), "file", "an uncompressed file, as this build has no zlib", "a gzip file");
  }
  std::size_t read_some(std::uint8_t*, std::size_t) { return 0; }
};
#endif

}  // namespace detail

/// Opens a regular file, plain or gzip. What does not open or read, and damaged or truncated gzip data, raise
/// file_error.
class byte_source {
 public:
  explicit byte_source(const std::filesystem::path& path) : file_(path) {
    if (file_.starts_with(0x1F, 0x8B)) gzip_ = std::make_unique<detail::gzip_reader>(file_);
  }
  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;

  const std::filesystem::path& path() const { return file_.path(); }

  /// The most bytes that can come out of this file: deflate shrinks at most 1032-fold.
  std::uint64_t size_limit() const { return gzip_ ? file_.size() * 1032 : file_.size(); }

  /// Reads `count` bytes, or fewer at the end.
  std::size_t read(std::uint8_t* to, std::size_t count) {
    if (!gzip_) return file_.read(to, count);
    std::size_t done = 0;
    while (done < count) {
      const std::size_t part = gzip_->read_some(to + done, count - done);
      if (part == 0) break;
      done += part;
    }
    return done;
  }

 private:
  detail::plain_file file_;
  std::unique_ptr<detail::gzip_reader> gzip_;
};

}  // namespace tessera::io
