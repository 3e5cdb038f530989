// SPDX-License-Identifier: Apache-2.0
// The exceptions that wrong input raises: every one carries a sentence naming the value, its position and the range.
#pragma once

#include <stdexcept>

namespace tessera {

struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct value_error : error {
  using error::error;
};

struct shape_error : error {
  using error::error;
};

struct index_error : error {
  using error::error;
};

struct file_error : error {
  using error::error;
};

}  // namespace tessera
