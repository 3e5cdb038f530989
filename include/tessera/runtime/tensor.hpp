// SPDX-License-Identifier: Apache-2.0
// An array at run time: dtype, shape, sharding and mesh are its type, its distinct blocks its memory.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/partition_spec.hpp>
#include <tessera/core/resolve.hpp>
#include <tessera/core/type_text.hpp>
#include <tessera/runtime/storage.hpp>

#include <span>
#include <string_view>
#include <vector>

#if defined(TESSERA_COMPILED)
#include <string>
#endif

namespace tessera {

namespace runtime {

/// Raises value_error: a tensor of this type holds no array.
[[noreturn]] void report_empty(std::string_view type);

/// Raises shape_error: a host array has these extents, or is not row-major, where a tensor of this type is wanted.
[[noreturn]] void report_extents(std::span<const std::int64_t> found, std::string_view wanted);

/// New storage filled from a host array of `count` elements; shape_error unless `type` has as many.
storage_ptr put(const aval& type, const mesh_value& mesh, const void* host, std::int64_t count,
                std::string_view wanted);

}  // namespace runtime

/// dtype, shape<...>, P<...>, mesh<...>. A spec that does not fit does not compile. Copies share memory; nothing that a
/// copy holds is ever changed by a step. Empty until something is put into it.
template <dtype D, class Shape, class Spec = P<>, class Mesh = mesh<>>
class tensor {
 public:
  static_assert(check_spec<D, Shape, Spec, Mesh>());

  static constexpr aval type = resolve<D, Shape, Spec, Mesh>().result;
  static constexpr dtype element = D;
  using element_type = storage_t<D>;
  using shape_type = Shape;
  using spec_type = Spec;
  using mesh_type = Mesh;
  using runtime_array = tensor;
  static constexpr int rank = Shape::rank;

  tensor() = default;
  explicit tensor(runtime::storage_ptr data) : data_(std::move(data)) {}

  const runtime::storage_ptr& data() const { return data_; }
  runtime::storage_ptr& data() { return data_; }

  /// Writes all elements, row-major, to memory for that many.
  void copy_to(element_type* host) const { runtime::copy_to_host(present(), host); }

  /// All elements, row-major. (Of bool use copy_to: a vector of bool has no array.)
  std::vector<element_type> to_vector() const requires(D != dtype::bool_) {
    std::vector<element_type> host(static_cast<std::size_t>(type.size()));
    copy_to(host.data());
    return host;
  }

  /// The only element of a scalar.
  element_type item() const requires(Shape::size == 1) {
    element_type value;
    runtime::copy_to_host(present(), &value);
    return value;
  }

 private:
  const runtime::storage& present() const {
    if (!data_) runtime::report_empty(type_text<tensor>());
    return *data_;
  }

  runtime::storage_ptr data_;
};

template <class T>
inline constexpr bool is_tensor = false;
template <dtype D, class Shape, class Spec, class Mesh>
inline constexpr bool is_tensor<tensor<D, Shape, Spec, Mesh>> = true;

template <class T>
concept Tensor = is_tensor<std::remove_cvref_t<T>>;

/// A contiguous run of host elements whose extents are not part of its type.
template <class T>
concept HostSpan = requires(const T& x) {
  {*x.data()};
  { x.size() } -> std::convertible_to<std::size_t>;
};

template <class T>
using host_element = std::remove_cvref_t<decltype(*std::declval<const T&>().data())>;

/// A host array that knows its extents and strides has those of the tensor, row-major; else shape_error.
template <class Shape, class Host>
void check_extents(const Host& host, std::string_view wanted) {
  if constexpr (requires { host.shape(), host.strides(); }) {
    bool fits = host.shape().size() == Shape::extents.size();
    std::int64_t stride = 1;
    for (std::size_t d = Shape::extents.size(); fits && d-- > 0;) {
      const auto extent = static_cast<std::int64_t>(host.shape()[d]);
      fits = extent == Shape::extents[d] && (extent == 1 || static_cast<std::int64_t>(host.strides()[d]) == stride);
      stride *= extent;
    }
    if (fits) return;
    const std::vector<std::int64_t> found(host.shape().begin(), host.shape().end());
    runtime::report_extents(found, wanted);
  }
}

/// A host array cut up over a mesh: `device_put<shape<32, 64>, P<"data">, cluster>(span)`. Elements are row-major, of a
/// dtype's C++ type, exactly as many as the shape has (and, if the array knows them, in the same extents); else
/// shape_error. Source: jax.device_put.
template <class Shape, class Spec, class Mesh, HostSpan Host>
requires DtypeStorage<host_element<Host>>
auto device_put(const Host& host) {
  using result = tensor<dtype_of<host_element<Host>>, Shape, Spec, Mesh>;
  const auto count = static_cast<std::int64_t>(host.size());
  if (count == Shape::size) check_extents<Shape>(host, type_text<result>());
  return result(runtime::put(result::type, Mesh::value, host.data(), count, type_text<result>()));
}

/// Elements of a type that is no dtype do not compile.
template <class Shape, class Spec, class Mesh, HostSpan Host>
requires(!DtypeStorage<host_element<Host>>) poison device_put(const Host&) {
  diagnose(report<message::device_put_dtype, no_details<Host>>);
  return {};
}

/// Without a shape it does not compile: extents are part of a tensor's type, and not of a host array's.
template <class Spec, class Mesh, HostSpan Host>
auto device_put(const Host&) {
  diagnose(report<message::device_put_shape, no_details<Host>>);
  return poison{};
}

#if defined(TESSERA_COMPILED)

namespace runtime {

TESSERA_COMPILED void report_empty(std::string_view type) {
  throw value_error("tensor: " + std::string(type) + " holds no array yet; put one into it first");
}

TESSERA_COMPILED void report_extents(std::span<const std::int64_t> found, std::string_view wanted) {
  std::string extents;
  for (const std::int64_t extent : found) extents.append(extents.empty() ? "" : ",").append(std::to_string(extent));
  throw shape_error("device_put: the host array has extents [" + extents + "], or is not row-major; it must be " +
                    std::string(wanted));
}

TESSERA_COMPILED storage_ptr put(const aval& type, const mesh_value& mesh, const void* host, std::int64_t count,
                                 std::string_view wanted) {
  if (count != type.size())
    throw shape_error("device_put: the host array has " + std::to_string(count) + " elements, " + std::string(wanted) +
                      " has " + std::to_string(type.size()));
  storage_ptr data = make_storage(type, mesh);
  copy_from_host(*data, host);
  return data;
}

}  // namespace runtime

#endif

}  // namespace tessera
