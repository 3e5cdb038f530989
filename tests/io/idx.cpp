// SPDX-License-Identifier: Apache-2.0
#include <tessera/io/idx.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace io = tessera::io;
namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

namespace {

/// A folder that is there for one test.
struct scratch {
  fs::path folder;

  scratch() {
    std::string name = (fs::temp_directory_path() / "tessera-idx-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { fs::remove_all(folder); }

  fs::path write(const std::string& name, const bytes& content) const {
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return folder / name;
  }
};

bytes idx(const std::vector<std::uint32_t>& shape, const bytes& data, std::uint8_t type = 0x08) {
  bytes file{0, 0, type, static_cast<std::uint8_t>(shape.size())};
  for (const std::uint32_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::uint8_t>(extent >> shift));
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

bytes counting(std::size_t n) {
  bytes data(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint8_t>(i * 7);
  return data;
}

/// The sentence after the file's name in the error that reading raises.
template <class Read>
std::string complaint(const fs::path& file, Read read) {
  try {
    read(file);
  } catch (const tessera::file_error& e) {
    const std::string text = e.what(), start = "io: " + file.string() + ": ";
    return text.rfind(start, 0) == 0 ? text.substr(start.size()) : "elsewhere: " + text;
  }
  return "no error";
}

std::string complaint(const fs::path& file) { return complaint(file, io::read_idx); }

#if TESSERA_HAS_ZLIB
bytes gzip(const bytes& content) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  bytes packed(deflateBound(&z, static_cast<uLong>(content.size())));
  bytes input = content;
  z.next_in = input.data();
  z.avail_in = static_cast<unsigned>(input.size());
  z.next_out = packed.data();
  z.avail_out = static_cast<unsigned>(packed.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}
#endif

/// The four files of a data set of n training images and m test images, in a folder.
void write_data_set(const scratch& s, std::uint32_t n, std::uint32_t m) {
  const auto labels = [](std::uint32_t count) {
    bytes values(count);
    for (std::uint32_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i % 10);
    return idx({count}, values);
  };
  s.write("train-images-idx3-ubyte", idx({n, 28, 28}, counting(n * 784)));
  s.write("train-labels-idx1-ubyte", labels(n));
  s.write("t10k-images-idx3-ubyte", idx({m, 28, 28}, counting(m * 784)));
  s.write("t10k-labels-idx1-ubyte", labels(m));
}

}  // namespace

TEST_CASE("a plain file gives its bytes and its shape") {
  const scratch s;
  const auto array = io::read_idx(s.write("a", idx({2, 3, 4}, counting(24))));
  CHECK(array.shape == std::vector<std::int64_t>{2, 3, 4});
  CHECK(array.data == counting(24));
  CHECK(io::read_images(s.folder / "a").data == counting(24));
  CHECK(io::read_labels(s.write("b", idx({5}, counting(5)))).shape == std::vector<std::int64_t>{5});
  CHECK(io::read_idx(s.write("empty", idx({0, 28, 28}, {}))).data.empty());
}

TEST_CASE("a file that is not there, or is no file, is refused") {
  const scratch s;
  CHECK(complaint(s.folder / "absent") == "file: expected a readable file, found nothing of that name");
  CHECK(complaint(s.folder) == "file: expected a regular file, found something else");
}

TEST_CASE("a wrong header is refused with the field, what was expected and what was found") {
  const scratch s;
  CHECK(complaint(s.write("none", {})) == "magic number: expected 4 bytes, found 0 bytes");
  CHECK(complaint(s.write("short", {0, 0, 8})) == "magic number: expected 4 bytes, found 3 bytes");
  CHECK(complaint(s.write("png", {0x89, 'P', 'N', 'G'})) == "magic number: expected 0x00 0x00, found 0x89 0x50");
  CHECK(complaint(s.write("float", idx({1}, {0, 0, 0, 0}, 0x0D))) ==
        "element type: expected 0x08 (unsigned byte), found 0x0d (32-bit float)");
  CHECK(complaint(s.write("type", idx({1}, {0}, 0x42))) == "element type: expected 0x08 (unsigned byte), found 0x42");
  CHECK(complaint(s.write("rank", idx({}, {1}))) == "rank: expected 1 or more, found 0");
  CHECK(complaint(s.write("cut", {0, 0, 8, 2, 0, 0, 0, 1, 0})) ==
        "extent of dimension 1: expected 4 bytes, found 1 byte");
}

TEST_CASE("data that is truncated or goes on is refused") {
  const scratch s;
  CHECK(complaint(s.write("cut", idx({2, 3}, counting(5)))) == "data: expected 6 bytes, found 5 bytes");
  CHECK(complaint(s.write("long", idx({2, 3}, counting(7)))) == "data: expected 6 bytes, found more bytes after them");
}

TEST_CASE("extents beyond what the file can hold are refused before anything is allocated") {
  const scratch s;
  constexpr std::uint32_t most = 0xffffffff;
  CHECK(complaint(s.write("huge", idx({most}, {1}))) ==
        "extent of dimension 0: expected a size that this file can hold, at most 9 bytes, found 1 x 4294967295");
  CHECK(complaint(s.write("overflow", idx({1, most, most, most, most, 2}, {1}))).find("extent of dimension 1: ") == 0);
  // 65536^4 is 0 in 64 bits, 2^63 * 2 too.
  CHECK(complaint(s.write("wrap", idx({65536, 65536, 65536, 65536}, {1}))).find("extent of dimension 0: ") == 0);
}

TEST_CASE("images have rank 3 and labels rank 1") {
  const scratch s;
  const auto flat = s.write("flat", idx({4, 6}, counting(24)));
  CHECK(complaint(flat, io::read_images) == "rank: expected 3 (count, rows, columns), found 2");
  CHECK(complaint(flat, io::read_labels) == "rank: expected 1 (count), found 2");
}

TEST_CASE("a data set loads from its four files and its counts must agree") {
  const scratch s;
  write_data_set(s, 13, 4);
  const io::fashion_mnist set = io::load_fashion_mnist(s.folder);
  CHECK(set.train.count() == 13);
  CHECK(set.test.count() == 4);
  CHECK(set.train.images.data == counting(13 * 784));
  CHECK(set.test.labels.data == bytes{0, 1, 2, 3});

  const auto load = [&s](const fs::path&) { io::load_fashion_mnist(s.folder); };
  const fs::path labels = s.write("t10k-labels-idx1-ubyte", idx({3}, {0, 1, 2}));
  CHECK(complaint(labels, load) == "number of labels: expected 4, one for each image of " +
                                       (s.folder / "t10k-images-idx3-ubyte").string() + ", found 3");
  s.write("t10k-labels-idx1-ubyte", idx({4}, {0, 1, 10, 2}));
  CHECK(complaint(labels, load) == "label 2: expected 0 to 9, found 10");
  const fs::path images = s.write("t10k-images-idx3-ubyte", idx({4, 28, 27}, counting(4 * 28 * 27)));
  CHECK(complaint(images, load) == "extents of an image: expected 28 x 28, found 28 x 27");
  fs::remove(images);
  CHECK(complaint(s.folder, load) ==
        "folder: expected t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz, found neither");
}

#if TESSERA_HAS_ZLIB
TEST_CASE("a compressed file gives the same as the plain one") {
  const scratch s;
  const auto array = io::read_idx(s.write("a.gz", gzip(idx({300, 28, 28}, counting(300 * 784)))));
  CHECK(array.shape == std::vector<std::int64_t>{300, 28, 28});
  CHECK(array.data == counting(300 * 784));

  bytes two_members = gzip(idx({9}, counting(4)));
  const bytes rest = counting(9), second = gzip({rest.begin() + 4, rest.end()});
  two_members.insert(two_members.end(), second.begin(), second.end());
  CHECK(io::read_idx(s.write("two.gz", two_members)).data == rest);
}

TEST_CASE("a compressed file that is damaged, truncated, too long or too short is refused") {
  const scratch s;
  const bytes whole = gzip(idx({300, 28, 28}, counting(300 * 784)));
  bytes cut = whole;
  cut.resize(whole.size() / 2);
  CHECK(complaint(s.write("cut.gz", cut)) == "gzip stream: expected whole data, found an early end");
  cut = whole;
  cut.resize(whole.size() - 4);
  CHECK(complaint(s.write("trailer.gz", cut)) == "gzip stream: expected whole data, found an early end");
  bytes flipped = whole;
  flipped[flipped.size() - 6] ^= 1;
  CHECK(complaint(s.write("checksum.gz", flipped)) == "gzip stream: expected intact data, found incorrect data check");
  bytes garbage = whole;
  garbage.push_back('x');
  CHECK(complaint(s.write("garbage.gz", garbage)).find("gzip stream: ") == 0);
  CHECK(complaint(s.write("short.gz", gzip(idx({9}, counting(8))))) == "data: expected 9 bytes, found 8 bytes");
  CHECK(complaint(s.write("long.gz", gzip(idx({9}, counting(10))))) ==
        "data: expected 9 bytes, found more bytes after them");
  CHECK(complaint(s.write("huge.gz", gzip(idx({0xffffffff}, {1})))).find("extent of dimension 0: ") == 0);
}
#endif

TEST_CASE("Fashion-MNIST itself loads where it is installed") {
  if (!fs::exists(io::fashion_mnist_folder)) {
    WARN("dataset-fashion-mnist is not installed: not tested");
    return;
  }
  const io::fashion_mnist set = io::load_fashion_mnist();
  CHECK(set.train.count() == 60'000);
  CHECK(set.test.count() == 10'000);
  std::array<int, 10> of_class{};
  for (const std::uint8_t label : set.train.labels.data) ++of_class[label];
  for (const int count : of_class) CHECK(count == 6000);
}
