// SPDX-License-Identifier: Apache-2.0
// Every sentence the library says at compile time, in one table.
#pragma once

#include <cstdint>
#include <string_view>

// One row a message: its name, and `tessera: <operation>: <what is wrong>; <what to write instead>`. In two parts, as
// Boost.Preprocessor counts to 256.
#define TESSERA_MESSAGES_1(X)                                                                                            \
  X(mesh_axis_size, "tessera: mesh: an axis has no devices; write axis<\"name\", 1> or more")                            \
  X(mesh_axis_name, "tessera: mesh: an axis name is empty or longer than 31 characters; write a shorter name")           \
  X(mesh_axis_count, "tessera: mesh: there are more than 8 axes; merge some of them")                                    \
  X(mesh_axis_twice, "tessera: mesh: two axes have one name; rename one of them")                                        \
  X(mesh_mismatch, "tessera: mesh: operands live on different meshes; put all of them on one mesh")                      \
  X(shape_rank, "tessera: shape: there are more than 8 dimensions; merge some of them")                                  \
  X(shape_extent, "tessera: shape: an extent is negative; write zero or more")                                           \
  X(spec_unknown_axis, "tessera: partition_spec: the mesh has no such axis; name one of its axes")                       \
  X(spec_axis_twice, "tessera: partition_spec: an axis is used twice; keep it on one dimension")                         \
  X(spec_axis_uses,                                                                                                      \
    "tessera: partition_spec: an axis has two uses among cutting a dimension, unreduced and reduced; keep one")          \
  X(spec_unreduced_kinds, "tessera: partition_spec: sums and extrema are pending at once; keep one kind of unreduced")   \
  X(spec_unreduced_bool, "tessera: partition_spec: a bool array has no pending sum; convert it with astype<...>")        \
  X(spec_too_long, "tessera: partition_spec: there are more entries than dimensions; drop the last ones")                \
  X(spec_indivisible,                                                                                                    \
    "tessera: partition_spec: an extent is not divisible by the devices along its axes; use the nearest extent "         \
    "or another axis")                                                                                                   \
  X(spec_axis_kind, "tessera: partition_spec: an axis is Manual or Auto here and cuts no array; leave it out")           \
  X(elementwise_dtype, "tessera: elementwise: operands have different dtypes; convert one with astype<...>")             \
  X(elementwise_shape, "tessera: elementwise: extents do not broadcast; reshape one operand")                            \
  X(elementwise_sharding, "tessera: elementwise: incompatible shardings for broadcasting; reshard one operand")          \
  X(elementwise_duplicate,                                                                                               \
    "tessera: elementwise: the result would use a mesh axis on two dimensions; reshard one operand")                     \
  X(unreduced_operand,                                                                                                   \
    "tessera: unreduced: the operation has no rule for an operand that is unreduced; reduce it first with "              \
    "reshard<P<...>>(x)")                                                                                                \
  X(reduced_operand,                                                                                                     \
    "tessera: reduced: the operation has no rule for an operand that is reduced; write reshard<P<...>>(x) "              \
    "without it")                                                                                                        \
  X(unreduced_result,                                                                                                    \
    "tessera: out_sharding: the operation cannot leave its result unreduced or reduced; write "                          \
    "reshard<P<...>>(result)")                                                                                           \
  X(unreduced_add,                                                                                                       \
    "tessera: add: only one side is unreduced, or over other axes than the other one; reshard one side first")           \
  X(unreduced_factor,                                                                                                    \
    "tessera: elementwise: the factor beside an unreduced array is not reduced over the same axes; reshard it "          \
    "to reduced<...> or reduce the array first")                                                                         \
  X(unreduced_divisor, "tessera: divide: the divisor is unreduced; reduce it first with reshard<P<...>>(x)")             \
  X(reduced_mix, "tessera: reduced: one operand is reduced over an axis and another one is not; reshard one of them")    \
  X(reduced_cut, "tessera: reduced: one operand is reduced over an axis that cuts another one; reshard one of them")     \
  X(marks_changed,                                                                                                       \
    "tessera: out_sharding: the unreduced or reduced axes are not those of the operand; write reshard<P<...>> "          \
    "for that")                                                                                                          \
  X(elementwise_needs_float, "tessera: elementwise: the operand is not floating-point; convert it with astype<f32>")     \
  X(elementwise_needs_number, "tessera: elementwise: the operand is bool; convert it with astype<...>")                  \
  X(elementwise_needs_bool, "tessera: elementwise: the operand is not bool; compare it with something first")            \
  X(elementwise_needs_integer, "tessera: elementwise: the operand is no integer; convert it with astype<i32>")           \
  X(matmul_dtype, "tessera: matmul: operands have different dtypes; convert one with astype<...>")                       \
  X(matmul_bool, "tessera: matmul: operands are bool; convert them with astype<f32>")                                    \
  X(matmul_rank, "tessera: matmul: an operand has no dimensions; multiply it with * instead")                            \
  X(matmul_extent, "tessera: matmul: contracting extents differ; transpose or reshape one operand")                      \
  X(matmul_batch_extent, "tessera: matmul: batch extents differ; broadcast_to one operand")                              \
  X(matmul_batch_sharding, "tessera: matmul: batch dimensions are sharded differently; reshard one operand")             \
  X(matmul_contracting_both,                                                                                             \
    "tessera: matmul: contracting dimensions are sharded and the result is ambiguous; say which you want with "          \
    "out_sharding<P<...>>")                                                                                              \
  X(matmul_contracting_one,                                                                                              \
    "tessera: matmul: one operand is sharded on the contracting dimension and would be moved silently; write "           \
    "reshard<P<...>>(operand) or out_sharding<P<...>>")                                                                  \
  X(matmul_duplicate,                                                                                                    \
    "tessera: matmul: the result would use a mesh axis on two dimensions; reshard one operand or write "                 \
    "out_sharding<P<...>>")                                                                                              \
  X(matmul_unreduced,                                                                                                    \
    "tessera: matmul: the unreduced axes are not exactly those that cut both contracting dimensions alike; "             \
    "name just these axes or reshard an operand")                                                                        \
  X(reduce_unreduced_axes,                                                                                               \
    "tessera: reduce: an unreduced axis of out_sharding cuts no dimension that is reduced; drop it or reshard "          \
    "first")                                                                                                             \
  X(reduce_unreduced_kind,                                                                                               \
    "tessera: reduce: the unreduced axes are of another kind than the reduction; reduce the operand first or "           \
    "write the matching unreduced<...>")                                                                                 \
  X(dot_general_dims,                                                                                                    \
    "tessera: dot_general: a dimension is not there, named twice or without partner; name each once, in pairs")          \
  X(einsum_text, "tessera: einsum: subscripts are letters, commas and one ->; write them as in \"ab,bc->ac\"")           \
  X(einsum_repeated, "tessera: einsum: a letter stands twice in one operand or in the result; use another letter")       \
  X(einsum_unknown, "tessera: einsum: the result has a letter that no operand has; drop it and broadcast_to")            \
  X(einsum_ellipsis, "tessera: einsum: an operand has dimensions in ... that the result has not; write ... there too")   \
  X(einsum_operands, "tessera: einsum: operands and subscripts are not as many; write one group of letters each")        \
  X(einsum_rank, "tessera: einsum: an operand has not as many dimensions as letters; write one letter a dimension")      \
  X(einsum_extent, "tessera: einsum: a letter stands for two extents; transpose or reshape one operand")                 \
  X(reduce_axis, "tessera: reduce: there is no such dimension; count from 0, or from -1 backwards")                      \
  X(reduce_axis_twice, "tessera: reduce: a dimension is named twice; name it once")                                      \
  X(reduce_empty, "tessera: reduce: a mean or maximum over no elements has no value; use sum or a non-empty shape")      \
  X(reduce_needs_float, "tessera: reduce: the operand is not floating-point; convert it with astype<f32>")               \
  X(reduce_ddof, "tessera: reduce: ddof leaves nothing to divide by; write less than the number of elements")            \
  X(reduce_index, "tessera: reduce: there are more elements than an int32 counts; name one dimension")                   \
  X(reduce_mean_float, "tessera: reduce: the mean of integers is not an integer; convert with astype<f32> first")        \
  X(cumulative_axis, "tessera: cumulative: there is no such dimension; count from 0, or from -1 backwards")              \
  X(cumulative_cut, "tessera: cumulative: the dimension is cut; reshard the operand so that it is whole")                \
  X(sort_axis, "tessera: sort: there is no such dimension; count from 0, or from -1 backwards")                          \
  X(sort_cut, "tessera: sort: the dimension is cut; reshard the operand so that it is whole")                            \
  X(sort_count, "tessera: sort: there are not as many elements; name a number up to the extent")                         \
  X(random_key, "tessera: random: this is no key; make one with random::make_key(seed)")                                 \
  X(random_size, "tessera: random: a key draws no more than 2^32 elements; draw parts from keys of their own")           \
  X(custom_op_refused,                                                                                                   \
    "tessera: custom_op: the rule of the operation refuses these operands; see its documentation, or reshard them")      \
  X(custom_op_gradient,                                                                                                  \
    "tessera: custom_op: the operation has no gradient; give its type one, or write stop_gradient")                      \
  X(custom_vjp_forward, "tessera: custom_vjp: fwd gives no pair; return std::pair(result, residuals)")                   \
  X(custom_vjp_result, "tessera: custom_vjp: fwd gives another result than the function; return the same types")         \
  X(custom_vjp_count, "tessera: custom_vjp: bwd gives not one cotangent an argument; return a tuple of them, or none")   \
  X(custom_vjp_cotangent,                                                                                                \
    "tessera: custom_vjp: a cotangent is not of the type of its argument; convert, reshape or reshard it")               \
  X(transpose_permutation, "tessera: transpose: this is not a permutation of the dimensions; name each once")            \
  X(reshape_size, "tessera: reshape: the number of elements changes; write extents with the same product")               \
  X(reshape_unsupported,                                                                                                 \
    "tessera: reshape: more than one split or merge of a sharded array; reshape in steps or write out_sharding<...>")    \
  X(reshape_split,                                                                                                       \
    "tessera: reshape: a sharded dimension is split so that its axes fit no new one; write out_sharding<P<...>>")        \
  X(reshape_merge,                                                                                                       \
    "tessera: reshape: a merge would move data between devices; reshard first or write out_sharding<P<...>>")            \
  X(broadcast_shape, "tessera: broadcast_to: extents of the operand do not fit the new shape; reshape it first")         \
  X(broadcast_sharding, "tessera: broadcast_to: the operand is sharded otherwise than out_sharding; reshard it first")   \
  X(shape_no_dimension, "tessera: shape: there is no such dimension; count from 0, or from -1 backwards")                \
  X(shape_dimension_twice, "tessera: shape: a dimension is named twice; name it once")                                   \
  X(squeeze_extent, "tessera: squeeze: the extent of the dimension is not 1; take a part of it with slice<...>")         \
  X(layout_sharding,                                                                                                     \
    "tessera: layout: a sharded dimension would change and its elements move between devices; write "                    \
    "out_sharding<P<...>> or reshard first")                                                                             \
  X(slice_entries, "tessera: slice: there are more entries than dimensions; drop the last ones")                         \
  X(slice_stride, "tessera: slice: a stride is 0; write 1, or -1 to go backwards")                                       \
  X(slice_index, "tessera: slice: an index is outside its dimension; count from 0, or from -1 backwards")                \
  X(split_sections, "tessera: split: the extent is not divisible by the number of sections; write the sizes")            \
  X(split_sizes, "tessera: split: the sizes do not add up to the extent; name all of them")                              \
  X(pad_entries, "tessera: pad: there are more entries than dimensions; drop the last ones")                             \
  X(pad_interior, "tessera: pad: interior padding is negative; take a part with slice<...>")                             \
  X(pad_extent, "tessera: pad: more is cropped than there is; crop less")                                                \
  X(pad_dtype, "tessera: pad: the fill value has another dtype; convert it with astype<...>")                            \
  X(pad_scalar, "tessera: pad: the fill value is not a scalar; index one element")                                       \
  X(concatenate_dtype, "tessera: concatenate: operands have different dtypes; convert one with astype<...>")             \
  X(concatenate_shape,                                                                                                   \
    "tessera: concatenate: extents of other dimensions differ; reshape, pad or broadcast_to one operand")                \
  X(concatenate_sharding, "tessera: concatenate: operands are sharded differently; reshard one operand")                 \
  X(roll_shift, "tessera: roll: the shift is no int32 scalar; convert it with astype<i32> or index it")                  \
  X(triangle_rank, "tessera: tril: the operand has fewer than 2 dimensions; reshape it to a matrix")                     \
  X(dynamic_start, "tessera: dynamic_slice: a start is no integer scalar; convert it with astype<i32> or index it")      \
  X(dynamic_starts, "tessera: dynamic_slice: there is not one start and one size a dimension; name all of them")         \
  X(dynamic_size, "tessera: dynamic_slice: a size is not within its dimension; take less")                               \
  X(dynamic_update_dtype,                                                                                                \
    "tessera: dynamic_update_slice: array and update have different dtypes; convert one with astype<...>")               \
  X(dynamic_update_shape,                                                                                                \
    "tessera: dynamic_update_slice: the update does not fit into the array; give it the same rank and less extent")      \
  X(dynamic_update_sharding,                                                                                             \
    "tessera: dynamic_update_slice: array and update are sharded differently; reshard one of them or write "             \
    "out_sharding<P<...>>")                                                                                              \
  X(conv_dtype, "tessera: conv: array and kernel have different dtypes or are bool; convert one with astype<...>")       \
  X(conv_rank, "tessera: conv: the array is not batch, one or two spatial dimensions, channels; reshape it")             \
  X(conv_kernel,                                                                                                         \
    "tessera: conv: the kernel is not spatial dimensions, input channels, output channels; transpose or reshape it")     \
  X(conv_groups,                                                                                                         \
    "tessera: conv: the groups do not divide the outputs, or the kernel has not the channels of one group; reshape the " \
    "kernel or name another feature_group_count<...>")                                                                   \
  X(conv_options, "tessera: conv: there is not one number from 1 on for each spatial dimension; name all of them")       \
  X(conv_window, "tessera: conv: a window is larger than what it slides over; pad with same or take a smaller one")      \
  X(conv_sharding,                                                                                                       \
    "tessera: conv: the kernel or the channels are sharded; write out_sharding<P<...>> or reshard them")                 \
  X(pool_dtype, "tessera: pool: the array is bool, or a mean is asked of integers; convert it with astype<f32>")         \
  X(take_indices, "tessera: take: the indices are not integers; convert them with astype<i32>")                          \
  X(take_batch,                                                                                                          \
    "tessera: take: dimensions that array and indices share differ in extent; reshape or broadcast_to one")              \
  X(take_empty, "tessera: take: there is nothing along the indexed dimension; index another one")                        \
  X(take_dimension_sharding,                                                                                             \
    "tessera: take: the indexed dimension is sharded; write out_sharding<P<...>> or reshard the array")                  \
  X(take_indices_sharding,                                                                                               \
    "tessera: take: the indices are sharded, and the gradient would be summed over devices; write "                      \
    "out_sharding<P<...>> or reshard the indices")                                                                       \
  X(take_batch_sharding,                                                                                                 \
    "tessera: take: array and indices are sharded in ways that do not go together; reshard one of them")                 \
  X(take_wrap, "tessera: take: several indices cannot wrap around together; take one dimension at a time")               \
  X(scatter_dtype, "tessera: at: the updates have another dtype than the array; convert them with astype<...>")          \
  X(scatter_shape, "tessera: at: the updates do not have the extents of the chosen elements; reshape or broadcast_to")   \
  X(scatter_sharding,                                                                                                    \
    "tessera: at: the updates are sharded otherwise than the chosen elements; reshard them or write "                    \
    "out_sharding<P<...>>")                                                                                              \
  X(where_predicate, "tessera: where: the predicate is not bool; compare it with something first")                       \
  X(where_unreduced, "tessera: where: the two cases are not unreduced over the same axes; reshard one of them")          \
  X(reshard_kind,                                                                                                        \
    "tessera: reshard: a pending maximum or minimum can only be reduced, and keeps its kind; reduce it first")           \
  X(astype_unreduced,                                                                                                    \
    "tessera: astype: the sum of rounded parts is not the rounded sum; reduce the array first with "                     \
    "reshard<P<...>>(x)")                                                                                                \
  X(where_dtype, "tessera: where: the two cases have different dtypes; convert one with astype<...>")                    \
  X(where_sharding, "tessera: where: operands of equal shape are sharded differently; reshard one operand")              \
  X(random_sixteen_bits, "tessera: random: 16-bit numbers are not drawn; draw float32 and write astype<...>(...)")       \
  X(one_hot_dtype, "tessera: one_hot: the classes are not integers; convert them with astype<i32>")
#define TESSERA_MESSAGES_2(X)                                                                                            \
  X(softmax_axis, "tessera: softmax: there is no such dimension; count from 0, or from -1 backwards")                    \
  X(softmax_needs_float, "tessera: softmax: the operand is not floating-point; convert it with astype<f32>")             \
  X(grad_not_scalar, "tessera: value_and_grad: the loss is not a scalar; reduce it with mean or sum")                    \
  X(grad_not_float, "tessera: value_and_grad: the loss is not floating-point; convert it with astype<f32>")              \
  X(grad_not_reduced, "tessera: value_and_grad: the loss is unreduced or reduced; write reshard<P<>>(loss)")             \
  X(grad_reduced_operand,                                                                                                \
    "tessera: value_and_grad: an operand of a product is reduced over axes that its gradient is no sum over; cut the "   \
    "other operand by them or drop reduced<...>")                                                                        \
  X(grad_pending_extremum,                                                                                               \
    "tessera: value_and_grad: there is no gradient through a pending maximum or minimum; reduce without unreduced")      \
  X(grad_nothing, "tessera: value_and_grad: the first argument has no parameters; pass a module or a float tensor")      \
  X(grad_sums,                                                                                                           \
    "tessera: value_and_grad: sums_in<...> is for parameters of a module that are reduced over a mesh axis, and there "  \
    "are none; mark them reduced<...>")                                                                                  \
  X(grad_aux, "tessera: value_and_grad: has_aux needs a pair; return std::pair(loss, aux)")                              \
  X(variable_assign,                                                                                                     \
    "tessera: variable: the new value has another dtype, shape or sharding; convert, reshape or reshard it first")       \
  X(optimizer_wrt, "tessera: optimizer: nothing says what it updates; write optimizer<param>(model, ...)")               \
  X(optimizer_nothing,                                                                                                   \
    "tessera: optimizer: the model has no variables of this kind; write optimizer<param>(model, ...)")                   \
  X(optimizer_gradients, "tessera: optimizer: the gradients belong to another model; pass those of this model")          \
  X(layer_option,                                                                                                        \
    "tessera: layer: an option is not one of this layer, or is given twice; see the options of the layer")               \
  X(layer_features, "tessera: layer: the last extent of the input is not in_features; make the layers chain")            \
  X(layer_chain,                                                                                                         \
    "tessera: sequential: two layers do not chain; make in_features the out_features of the layer before")               \
  X(dropout_rate, "tessera: dropout: the rate is outside [0, 1]; write a probability")                                   \
  X(module_members, "tessera: module: there are more than 39 members; put some into a module of their own")              \
  X(module_macro, "tessera: module: the type does not name its members; write TESSERA_MODULE(type, members...)")         \
  X(cross_entropy_labels, "tessera: softmax_cross_entropy: labels are not integers; convert them with astype<i32>")      \
  X(cross_entropy_shape,                                                                                                 \
    "tessera: softmax_cross_entropy: labels need the shape of the logits without classes; reshape them")                 \
  X(cross_entropy_classes, "tessera: softmax_cross_entropy: the logits have no classes; give them a last dimension")     \
  X(collective_axis, "tessera: collective: the mesh has no axis of this name; name one of its axes")                     \
  X(collective_axis_twice, "tessera: collective: an axis is named twice; name each once")                                \
  X(collective_not_manual,                                                                                               \
    "tessera: collective: the operand does not come from inside a shard_map over this axis; call it in the body, "       \
    "on what the body was given")                                                                                        \
  X(collective_states,                                                                                                   \
    "tessera: collective: the operand is varying over some of the axes only; name these alone or pcast it first")        \
  X(collective_needs_number, "tessera: collective: the operand is bool; convert it with astype<...>")                    \
  X(collective_mean_float,                                                                                               \
    "tessera: collective: the mean of integers is not an integer; convert with astype<f32> first")                       \
  X(collective_pending,                                                                                                  \
    "tessera: collective: a sum over the axis is pending in the operand; finish it with psum or psum_scatter")           \
  X(collective_dim, "tessera: collective: there is no such dimension; count from 0, or from -1 backwards")               \
  X(collective_indivisible,                                                                                              \
    "tessera: collective: the extent to split is not divisible by the devices along the axes; pad it or choose "         \
    "another dimension")                                                                                                 \
  X(collective_untiled,                                                                                                  \
    "tessera: collective: the dimension to split is not as long as there are devices; write tiled to cut it in "         \
    "blocks")                                                                                                            \
  X(collective_rank, "tessera: collective: the result would have more than 8 dimensions; write tiled")                   \
  X(ppermute_pairs,                                                                                                      \
    "tessera: ppermute: a device sends or receives twice, or does not exist; name each at most once, counted from 0")    \
  X(ppermute_devices,                                                                                                    \
    "tessera: ppermute: pairs can be written for at most 24 devices along an axis; write ring<...> or shift<...>")       \
  X(pcast_transition,                                                                                                    \
    "tessera: pcast: there is no cast between these states; casts are invarying to varying or reduced, varying to "      \
    "unreduced, reduced to varying, for others use all_gather, psum or psum_scatter")                                    \
  X(pmax_gradient, "tessera: pmax: it has no gradient; put the operand into stop_gradient")                              \
  X(shard_map_argument, "tessera: shard_map: an argument is no array, number or tuple of them; pass arrays")             \
  X(shard_map_result, "tessera: shard_map: a result is no array; return arrays, or a tuple of them")                     \
  X(shard_map_mesh, "tessera: shard_map: no argument says which mesh it runs over; pass an array that lives on one")     \
  X(shard_map_out_specs, "tessera: shard_map: nothing says how results lie; write shard_map<out_specs<P<...>>>(f)")      \
  X(shard_map_in_count, "tessera: shard_map: in_specs and arguments differ in number; write one spec an argument")       \
  X(shard_map_out_count, "tessera: shard_map: out_specs and results differ in number; write one spec a result")          \
  X(shard_map_in_spec,                                                                                                   \
    "tessera: shard_map: an argument does not lie as in_specs says; reshard it first or leave in_specs out")             \
  X(shard_map_own_specs,                                                                                                 \
    "tessera: shard_map: in_specs has a spec for a module, whose variables have their own; write own_specs for it")      \
  X(shard_map_out_axis, "tessera: shard_map: out_specs names an axis that is not Manual in the body; leave it out")      \
  X(shard_map_marks,                                                                                                     \
    "tessera: shard_map: a result is unreduced or reduced over other axes than out_specs says; write unreduced<...> or " \
    "reduced<...> there, or psum it first")                                                                              \
  X(shard_map_may_vary,                                                                                                  \
    "tessera: shard_map: a result may vary over an axis that out_specs does not mention; name the axis there, or "       \
    "combine the blocks with psum, pmean or all_gather(..., to_invarying)")                                              \
  X(shard_map_captured, "tessera: shard_map: the body uses an array that is sharded outside; pass it as an argument")    \
  X(shard_map_axis_names, "tessera: shard_map: axis_names names an axis the mesh does not have; name one of its axes")   \
  X(shard_map_nested, "tessera: shard_map: the axis is Manual already; name other axes in axis_names<...>")              \
  X(shard_map_mixed_cut,                                                                                                 \
    "tessera: shard_map: a dimension is cut by Manual and other axes; put the Manual ones first or reshard it")          \
  X(region_argument,                                                                                                     \
    "tessera: auto_axes: an argument of the region is no array, number or tuple of them; pass arrays")                   \
  X(region_result, "tessera: auto_axes: a result of the region is no array; return arrays, or a tuple of them")          \
  X(region_mesh,                                                                                                         \
    "tessera: auto_axes: no argument says which mesh the region runs over; pass an array that lives on one")             \
  X(region_axis, "tessera: auto_axes: the mesh has no such axis; name one of its axes")                                  \
  X(region_axis_kind,                                                                                                    \
    "tessera: auto_axes: the axis is not of the kind that the region changes; auto_axes takes Explicit axes, "           \
    "explicit_axes Auto ones")                                                                                           \
  X(auto_axes_out_sharding,                                                                                              \
    "tessera: auto_axes: nothing says how results lie; write auto_axes<...>(f, out_sharding<P<...>>)")                   \
  X(auto_axes_out_count,                                                                                                 \
    "tessera: auto_axes: specs and results differ in number; write one out_sharding<...> a result, or one for all")      \
  X(auto_axes_captured,                                                                                                  \
    "tessera: auto_axes: the region uses an array that is sharded outside; pass it as an argument")                      \
  X(explicit_axes_in_sharding,                                                                                           \
    "tessera: explicit_axes: nothing says how arguments lie; write explicit_axes<...>(f, in_sharding<P<...>>)")          \
  X(explicit_axes_in_count,                                                                                              \
    "tessera: explicit_axes: specs and arguments differ in number; write one in_sharding<...> an argument")              \
  X(constraint_differs,                                                                                                  \
    "tessera: with_sharding_constraint: the array does not lie so; reshard it, or drop the constraint")                  \
  X(constraint_axis,                                                                                                     \
    "tessera: with_sharding_constraint: the axis is not Auto, its place is in the type; name Auto axes only")            \
  X(vmap_argument,                                                                                                       \
    "tessera: vmap: a mapped argument is no array or tuple of arrays; write none for it in in_axes<...>")                \
  X(vmap_nothing, "tessera: vmap: no argument is mapped; name a dimension of one in in_axes<...>")                       \
  X(vmap_in_axes,                                                                                                        \
    "tessera: vmap: in_axes and arguments differ in number; write one entry an argument, or one for all")                \
  X(vmap_out_axes, "tessera: vmap: out_axes and results differ in number; write one entry a result, or one for all")     \
  X(vmap_dimension, "tessera: vmap: there is no such dimension; count from 0, or from -1 backwards")                     \
  X(vmap_extent, "tessera: vmap: mapped dimensions differ in extent; slice or reshape one argument")                     \
  X(vmap_sharding, "tessera: vmap: mapped dimensions are sharded differently; reshard one argument")                     \
  X(vmap_axis,                                                                                                           \
    "tessera: vmap: an array lies along the axis that cuts the mapped dimension; reshard it without that axis")          \
  X(vmap_result, "tessera: vmap: a result is no array; return arrays, or a tuple of them")                               \
  X(vmap_out_none,                                                                                                       \
    "tessera: vmap: out_axes says none for a result that depends on what is mapped; name a dimension for it")            \
  X(vmap_operation,                                                                                                      \
    "tessera: vmap: the function has an operation that cannot be mapped; call it outside, or use scan")                  \
  X(device_put_shape,                                                                                                    \
    "tessera: device_put: the type of a host array does not hold its extents; write device_put<shape<...>, P<...>, "     \
    "mesh>(array)")                                                                                                      \
  X(module_twice, "tessera: module: a member is named twice; name it once")                                              \
  X(module_container,                                                                                                    \
    "tessera: module: how many elements a member has is not known while compiling; use std::array or "                   \
    "std::tuple")                                                                                                        \
  X(module_unnamed, "tessera: module: a variable is not among the members that TESSERA_MODULE names; name it there")     \
  X(scan_escape, "tessera: scan: a value of the body is used outside of it; return it as carry or as output")            \
  X(state_split, "tessera: split: no filter takes one of the variables; add everything_else")                            \
  X(state_merge, "tessera: merge: none of the states has one of the variables; pass all that split gave")                \
  X(logical_axis, "tessera: rules: no rule names a logical axis; add rule<name, axis> or rule<name, none>")              \
  X(while_state, "tessera: while_loop: the condition changes a variable; change it in the body")                         \
  X(vmap_state,                                                                                                          \
    "tessera: vmap: the function changes a variable of a module, of which there is one for all examples; return the "    \
    "value, or use scan")                                                                                                \
  X(step_copy,                                                                                                           \
    "tessera: jit: the step changes a copy of its argument; take modules and optimizers by reference, auto& "            \
    "model")                                                                                                             \
  X(outside_jit, "tessera: jit: operations take traced arrays, not tensors; call them in a step, jit<step>(x, ...)")     \
  X(jit_local, "tessera: jit: the step is a local variable; make it inline constexpr at namespace scope")                \
  X(jit_number,                                                                                                          \
    "tessera: jit: a number is of a type that is no dtype; convert it to float, double, std::int32_t, "                  \
    "std::uint32_t or bool")                                                                                             \
  X(device_put_dtype,                                                                                                    \
    "tessera: device_put: elements are of a type that is no dtype; convert them to float, double, "                      \
    "std::int32_t, std::uint32_t or bool")                                                                               \
  X(optimizer_swapped, "tessera: optimizer: gradients stand where the model goes; write update(model, gradients)")       \
  X(optimizer_const, "tessera: optimizer: what is updated is const; take it as auto& and pass one that is not const")    \
  X(optimizer_init, "tessera: optimizer: the model is on no mesh; make it with init<type, mesh>(rngs)")                  \
  X(variable_const,                                                                                                      \
    "tessera: variable: it is const and cannot be assigned; take its module as auto& and pass one that is not "          \
    "const")                                                                                                             \
  X(grad_pair, "tessera: value_and_grad: the function returns more than a loss; write value_and_grad(f, has_aux)")       \
  X(visualize_rank,                                                                                                      \
    "tessera: visualize_array_sharding: only arrays of 1 or 2 dimensions can be drawn; slice or reshape it first")       \
  X(scan_carry,                                                                                                          \
    "tessera: scan: the body returns another carry than it gets; convert, reshape or reshard it to the type of init")    \
  X(scan_result,                                                                                                         \
    "tessera: scan: the body returns no pair; return std::pair(carry, output), with none where there is no output")      \
  X(scan_output, "tessera: scan: an output is no array; return arrays, tuples of them or none")                          \
  X(scan_nothing, "tessera: scan: neither init nor the stacked arrays are traced; pass at least one array")              \
  X(scan_module,                                                                                                         \
    "tessera: scan: a module is scanned over as a whole; make it nn::stack<N, layer>, or pass its arrays")               \
  X(scan_unroll, "tessera: scan: the trips are no multiple of the unrolling; take a number that divides them")           \
  X(scan_length, "tessera: scan: stacked arrays differ in their leading extent, or have none; reshape them")             \
  X(scan_leading, "tessera: scan: the leading dimension of a stacked array is sharded; reshard it")                      \
  X(while_condition, "tessera: while_loop: the condition is no bool scalar; compare something first")                    \
  X(cond_predicate, "tessera: cond: the predicate is no bool scalar; compare something first")                           \
  X(cond_results, "tessera: cond: the two functions return different types; convert, reshape or reshard one")            \
  X(jit_argument,                                                                                                        \
    "tessera: jit: an argument is no tensor, number, module made by init or optimizer; pass one of these")               \
  X(jit_result, "tessera: jit: a result is no traced value; return arrays, or a tuple of them")                          \
  X(program_fits,                                                                                                        \
    "tessera: fits: the program needs more bytes than a device has; shard or checkpoint what is largest")                \
  X(policy_name,                                                                                                         \
    "tessera: checkpoint: no value in the function carries a name that the policy lists; call checkpoint_name "          \
    "with it or drop it")
#define TESSERA_MESSAGES(X) TESSERA_MESSAGES_1(X) TESSERA_MESSAGES_2(X)

namespace tessera {

/// The name of a message.
enum class message : std::uint16_t {
  none,
#define TESSERA_MESSAGE_NAME(name, sentence) name,
  TESSERA_MESSAGES(TESSERA_MESSAGE_NAME)
#undef TESSERA_MESSAGE_NAME
};

/// What the library says.
constexpr std::string_view sentence(message m) {
  constexpr std::string_view sentences[] = {"",
#define TESSERA_MESSAGE_SENTENCE(name, sentence) sentence,
                                            TESSERA_MESSAGES(TESSERA_MESSAGE_SENTENCE)
#undef TESSERA_MESSAGE_SENTENCE
  };
  return sentences[static_cast<int>(m)];
}

}  // namespace tessera
