// SPDX-License-Identifier: Apache-2.0
// Reader of IDX files, the format of MNIST and its relatives: plain, or compressed by gzip where zlib is there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/io/byte_source.hpp>

namespace tessera::io {

/// An array of unsigned bytes, row-major.
struct idx_array {
  std::vector<std::uint8_t> data;
  std::vector<std::int64_t> shape;
};

namespace detail {

inline std::string hex_byte(std::uint8_t byte) {
  constexpr char digits[] = "0123456789abcdef";
  return std::string("0x") + digits[byte >> 4] + digits[byte & 15];
}

inline std::string element_type_text(std::uint8_t code) {
  switch (code) {
    case 0x08: return "0x08 (unsigned byte)";
    case 0x09: return "0x09 (signed byte)";
    case 0x0B: return "0x0b (16-bit integer)";
    case 0x0C: return "0x0c (32-bit integer)";
    case 0x0D: return "0x0d (32-bit float)";
    case 0x0E: return "0x0e (64-bit float)";
    default: return hex_byte(code);
  }
}

/// The header of an IDX file: two zero bytes, an element type, a rank, and an extent of four big-endian bytes a
/// dimension. Every dimension and the size they make is checked against what the file can hold.
inline std::vector<std::int64_t> read_idx_header(byte_source& source) {
  std::array<std::uint8_t, 4> word{};
  const auto read_word = [&](const std::string& field) {
    if (const std::size_t got = source.read(word.data(), 4); got < 4)
      throw_file(source.path(), field, "4 bytes", bytes_text(got));
  };
  read_word("magic number");
  if (word[0] != 0 || word[1] != 0)
    throw_file(source.path(), "magic number", "0x00 0x00", hex_byte(word[0]) + " " + hex_byte(word[1]));
  if (word[2] != 0x08) throw_file(source.path(), "element type", element_type_text(0x08), element_type_text(word[2]));
  const std::size_t rank = word[3];
  if (rank == 0) throw_file(source.path(), "rank", "1 or more", "0");

  std::vector<std::int64_t> shape(rank);
  std::uint64_t size = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::string field = "extent of dimension " + number_text(d);
    read_word(field);
    std::uint64_t extent = 0;
    for (const std::uint8_t byte : word) extent = extent << 8 | byte;
    // The bound is checked by division, so that no product overflows; an empty array may have any other extents.
    if (extent != 0 && size > source.size_limit() / extent)
      throw_file(source.path(), field, "a size that this file can hold, at most " + bytes_text(source.size_limit()),
                 number_text(size) + " x " + number_text(extent));
    size *= extent;
    shape[d] = static_cast<std::int64_t>(extent);
  }
  return shape;
}

}  // namespace detail

/// Reads an IDX file of unsigned bytes of any rank: path -> (data, shape). A file that cannot be read, is truncated,
/// has bytes after its data, or whose magic number, element type, rank or extents are wrong raises file_error naming
/// the file, the field, what was expected and what was found. Memory grows with the bytes that really arrive.
/// Source: the format as described with the MNIST database (Y. LeCun, C. Cortes, C. Burges).
inline idx_array read_idx(const std::filesystem::path& file) {
  byte_source source(file);
  idx_array array{{}, detail::read_idx_header(source)};
  std::uint64_t size = 1;
  for (const std::int64_t extent : array.shape) size *= static_cast<std::uint64_t>(extent);

  constexpr std::uint64_t step = std::uint64_t{1} << 24;
  while (array.data.size() < size) {
    const std::size_t have = array.data.size();
    array.data.resize(have + static_cast<std::size_t>(std::min(size - have, step)));
    if (const std::size_t got = source.read(array.data.data() + have, array.data.size() - have);
        have + got < array.data.size())
      detail::throw_file(file, "data", detail::bytes_text(size), detail::bytes_text(have + got));
  }
  if (std::uint8_t extra = 0; source.read(&extra, 1) != 0)
    detail::throw_file(file, "data", detail::bytes_text(size), "more bytes after them");
  return array;
}

namespace detail {

inline idx_array read_idx_of_rank(const std::filesystem::path& file, std::size_t rank, const char* meaning) {
  idx_array array = read_idx(file);
  if (array.shape.size() != rank)
    throw_file(file, "rank", number_text(rank) + std::string(" (") + meaning + ")", number_text(array.shape.size()));
  return array;
}

}  // namespace detail

/// Images: an IDX file of rank 3, (count, rows, columns).
inline idx_array read_images(const std::filesystem::path& file) {
  return detail::read_idx_of_rank(file, 3, "count, rows, columns");
}

/// Labels: an IDX file of rank 1, (count).
inline idx_array read_labels(const std::filesystem::path& file) { return detail::read_idx_of_rank(file, 1, "count"); }

/// Images (n, 28, 28) with pixels 0 .. 255 and n labels 0 .. 9.
struct labelled_images {
  idx_array images;
  idx_array labels;

  std::int64_t count() const { return labels.shape.front(); }
};

struct fashion_mnist {
  labelled_images train;
  labelled_images test;
};

namespace detail {

/// The file of this name in the folder, compressed or not.
inline std::filesystem::path find_idx(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path plain = folder / name, packed = folder / (name + ".gz");
  std::error_code ignored;
  if (std::filesystem::exists(plain, ignored)) return plain;
  if (std::filesystem::exists(packed, ignored)) return packed;
  throw_file(folder, "folder", name + " or " + name + ".gz", "neither");
}

inline labelled_images load_labelled_images(const std::filesystem::path& folder, const std::string& part) {
  const std::filesystem::path images_file = find_idx(folder, part + "-images-idx3-ubyte");
  const std::filesystem::path labels_file = find_idx(folder, part + "-labels-idx1-ubyte");
  labelled_images set{read_images(images_file), read_labels(labels_file)};
  const auto& shape = set.images.shape;
  if (shape[1] != 28 || shape[2] != 28)
    throw_file(images_file, "extents of an image", "28 x 28", number_text(shape[1]) + " x " + number_text(shape[2]));
  if (shape[0] != set.count())
    throw_file(labels_file, "number of labels",
               number_text(shape[0]) + ", one for each image of " + images_file.string(), number_text(set.count()));
  const auto& labels = set.labels.data;
  if (const auto bad = std::find_if(labels.begin(), labels.end(), [](std::uint8_t l) { return l > 9; });
      bad != labels.end())
    throw_file(labels_file, "label " + number_text(bad - labels.begin()), "0 to 9", number_text(int{*bad}));
  return set;
}

}  // namespace detail

/// Where the distribution's package dataset-fashion-mnist puts its files.
inline constexpr const char* fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

/// The training and the test set of Fashion-MNIST from a folder that holds its four files, compressed or not. Besides
/// what read_idx refuses, images that are not 28 x 28, another number of labels than of images, and a label above 9
/// raise file_error. Source: H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST" (2017).
inline fashion_mnist load_fashion_mnist(const std::filesystem::path& folder = fashion_mnist_folder) {
  return {detail::load_labelled_images(folder, "train"), detail::load_labelled_images(folder, "t10k")};
}

}  // namespace tessera::io
