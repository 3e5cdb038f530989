// SPDX-License-Identifier: Apache-2.0
// Which reference cases are tested, and where; all of them are, or are left out for a stated reason.
#include "reference/reference.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

namespace {

const std::set<std::string> sections{"6.1", "6.2", "6.3",  "6.4", "6.5", "6.6", "6.7",
                                     "6.8", "6.9", "6.10", "ex1", "ex2", "ex3", "ex4"};

/// The test that checks a case by its name, a file under tests/.
const std::map<std::string, std::string> covered{
    {"memory_10b_fp32_gb", "plan/budget.cpp"},
    {"mixed_bytes_per_param", "plan/budget.cpp"},
    {"zero3_gb_per_device", "plan/budget.cpp"},
    {"ring_allreduce_gb", "plan/budget.cpp"},
    {"adam_state_ratio_toy", "plan/budget.cpp"},
    {"warmup_cosine_values", "optim/schedules.cpp"},
    {"global_norm_before_clip", "optim/transforms.cpp"},
    {"clip_then_adamw_three_steps", "optim/transforms.cpp"},
    {"global_dropout_mask_key42", "random/distributions.cpp"},
    {"per_device_masks_kept", "random/distributions.cpp"},
    {"dp_losses", "reference_cases/data_parallel.cpp"},
    {"dp_params_after_3", "reference_cases/data_parallel.cpp"},
    {"dp_vs_single_param_diff", "reference_cases/data_parallel.cpp"},
    {"dp_collectives_per_step", "reference_cases/data_parallel.cpp"},
    {"up_kernel_bytes_global_and_device", "reference_cases/data_parallel.cpp"},
    {"tp_forward_reference", "reference_cases/tensor_parallel.cpp"},
    {"tp_forward_error", "reference_cases/tensor_parallel.cpp"},
    {"adam5_last_loss", "reference_cases/tensor_parallel.cpp"},
    {"momentum5_losses_and_params", "reference_cases/tensor_parallel.cpp"},
    {"tp_adam_loss", "reference_cases/tensor_parallel.cpp"},
    {"tp_adam_param_diff", "reference_cases/tensor_parallel.cpp"},
    {"tp_momentum_param_diff", "reference_cases/tensor_parallel.cpp"},
    {"tp_collectives", "reference_cases/tensor_parallel.cpp"},
    {"fsdp_kib_global_and_device", "reference_cases/tensor_parallel.cpp"},
    {"pipeline_output", "reference_cases/by_hand.cpp"},
    {"ex3_answer_loss", "reference_cases/by_hand.cpp"},
    {"ex3_answer_grads", "reference_cases/by_hand.cpp"},
    {"ex3_answer_sharded_grad_diff", "reference_cases/by_hand.cpp"},
    {"ex3_collectives", "reference_cases/by_hand.cpp"},
    {"object_mlp_initial_weights", "nn/initializers.cpp"},
    {"big_batch_loss_and_grad", "reference_cases/accumulation.cpp"},
    {"accumulated_vs_big", "reference_cases/accumulation.cpp"},
    {"params_after_5_accumulated_adam_steps", "reference_cases/accumulation.cpp"},
    {"sum_loss_added", "reference_cases/accumulation.cpp"},
    {"sum_loss_wrongly_averaged", "reference_cases/accumulation.cpp"},
    {"dp_accumulation_vs_big", "reference_cases/accumulation.cpp"},
    {"ex1_answer_loss_and_grad", "reference_cases/accumulation.cpp"},
    {"ex1_answer_weighted_accumulation_error", "reference_cases/accumulation.cpp"},
    {"ex1_answer_plain_average_error", "reference_cases/accumulation.cpp"},
    {"lamb_trust_ratios", "optim/optimizers.cpp"},
    {"adamw_formula_vs_optimizer", "optim/optimizers.cpp"},
    {"adam_l2_vs_adamw", "optim/optimizers.cpp"},
    {"adamw_step0_zero_lr", "optim/optimizers.cpp"},
    {"adamw_step1_params", "optim/optimizers.cpp"},
    {"masked_decay_updates", "optim/optimizers.cpp"},
    {"state_ratio_sgd", "optim/optimizers.cpp"},
    {"state_ratio_sgd+momentum", "optim/optimizers.cpp"},
    {"state_ratio_adamw", "optim/optimizers.cpp"},
    {"state_ratio_adafactor", "optim/optimizers.cpp"},
    {"state_ratio_lamb", "optim/optimizers.cpp"},
    {"state_ratio_lion", "optim/optimizers.cpp"},
    {"adafactor_state_shapes", "optim/optimizers.cpp"},
    {"replicated_and_sharded_mu_bytes", "optim/optimizers.cpp"},
    {"three_steps_constant_sgd+momentum", "optim/optimizers.cpp"},
    {"three_steps_constant_adam", "optim/optimizers.cpp"},
    {"three_steps_constant_adamw", "optim/optimizers.cpp"},
    {"three_steps_constant_adafactor", "optim/optimizers.cpp"},
    {"three_steps_constant_lamb", "optim/optimizers.cpp"},
    {"three_steps_constant_lars", "optim/optimizers.cpp"},
    {"three_steps_constant_lion", "optim/optimizers.cpp"},
    {"three_steps_constant_sm3", "optim/optimizers.cpp"},
    {"opt_initial_loss", "reference_cases/optimizer_race.cpp"},
    {"opt_trajectory_sgd+momentum", "reference_cases/optimizer_race.cpp"},
    {"opt_state_ratio_sgd+momentum", "reference_cases/optimizer_race.cpp"},
    {"opt_final_sgd+momentum", "reference_cases/optimizer_race.cpp"},
    {"opt_trajectory_adamw", "reference_cases/optimizer_race.cpp"},
    {"opt_state_ratio_adamw", "reference_cases/optimizer_race.cpp"},
    {"opt_final_adamw", "reference_cases/optimizer_race.cpp"},
    {"opt_state_ratio_adafactor", "reference_cases/optimizer_race.cpp"},
    {"opt_final_adafactor", "reference_cases/optimizer_race.cpp"},
    {"opt_trajectory_lamb", "reference_cases/optimizer_race.cpp"},
    {"opt_state_ratio_lion", "reference_cases/optimizer_race.cpp"},
    {"opt_final_lion", "reference_cases/optimizer_race.cpp"},
    {"multisteps_trace", "reference_cases/multi_steps.cpp"},
    {"multisteps_vs_big_adam", "reference_cases/multi_steps.cpp"},
    {"multisteps_buffer_ratio", "reference_cases/multi_steps.cpp"},
    {"relu_block_sum_and_grads", "reference_cases/remat.cpp"},
    {"wide_block_loss", "reference_cases/remat.cpp"},
    {"transformer_param_count", "reference_cases/remat.cpp"},
    {"transformer_loss", "reference_cases/remat.cpp"},
    {"transformer_grad_norms", "reference_cases/remat.cpp"},
    {"training_state_leaf_count", "nn/split.cpp"},
    {"bnnet_losses", "reference_cases/batch_norm.cpp"},
    {"bnnet_running_stats_after_5", "reference_cases/batch_norm.cpp"},
    {"bn_micro_grad_diff", "reference_cases/batch_norm.cpp"},
    {"object_transformer_first_keys", "reference_cases/remat.cpp"},
    {"ex2_loss", "reference_cases/remat.cpp"},
    {"matmul_gflop_fwd_total_layerwise", "reference_cases/remat.cpp"},
    {"deep_mlp_loss_and_grads", "reference_cases/remat.cpp"},
    {"gpipe_bubble_p4_m1", "plan/budget.cpp"},
    {"gpipe_bubble_p4_m4", "plan/budget.cpp"},
    {"saved_residual_mib_scan16", "reference_cases/residuals.cpp"},
    {"wide_block_saved_hidden_arrays", "reference_cases/residuals.cpp"},
    {"transformer_saved_residual_mib", "reference_cases/residuals.cpp"},
    {"finfo_float32", "reference_cases/sixteen_bits.cpp"},
    {"finfo_bfloat16", "reference_cases/sixteen_bits.cpp"},
    {"round_1e-8", "reference_cases/sixteen_bits.cpp"},
    {"round_7e4", "reference_cases/sixteen_bits.cpp"},
    {"256_plus_1", "reference_cases/sixteen_bits.cpp"},
    {"bf16_sequential_sum_1000", "reference_cases/sixteen_bits.cpp"},
    {"manual_bf16_forward", "reference_cases/sixteen_bits.cpp"},
    {"matmul_error_fp32", "reference_cases/sixteen_bits.cpp"},
    {"matmul_error_bf16_out_bf16", "reference_cases/sixteen_bits.cpp"},
    {"matmul_error_bf16_acc_fp32", "reference_cases/sixteen_bits.cpp"},
    {"ex4_bf16_vs_master", "reference_cases/sixteen_bits.cpp"},
    {"fp32_first_loss", "reference_cases/mixed_precision.cpp"},
    {"fp32_loss_trajectory", "reference_cases/mixed_precision.cpp"},
    {"fp32_last_loss", "reference_cases/mixed_precision.cpp"},
    {"bf16_first_loss", "reference_cases/mixed_precision.cpp"},
    {"bf16_last_loss", "reference_cases/mixed_precision.cpp"},
    {"small_grad_absmax", "reference_cases/mixed_precision.cpp"},
    {"fp16_quality_scale_2^0", "reference_cases/mixed_precision.cpp"},
    {"fp16_quality_scale_2^15", "reference_cases/mixed_precision.cpp"},
    {"dynamic_scale_first_12", "reference_cases/mixed_precision.cpp"},
    {"dynamic_scale_skipped_total", "reference_cases/mixed_precision.cpp"},
    {"dynamic_scale_final_log2", "reference_cases/mixed_precision.cpp"},
    {"fp16_dynamic_last_loss", "reference_cases/mixed_precision.cpp"},
    {"apply_if_finite_nan", "reference_cases/mixed_precision.cpp"},
    {"mlp_784_128_10_object_init_logits", "nn/split.cpp"},
    {"mlp_784_128_10_functional_init_logits", "nn/split.cpp"},
    {"linear_3_4_object_init_on_ones", "nn/split.cpp"},
};

/// Why a case has no test.
const std::map<std::string, std::string> left_out{
    {"same_key_same_stream", "a draw depends on the key and the number of elements alone, by the published vectors"},
    {"ex2_best_group_size_model", "a model of memory; ours is counted from the plan, and its minimum is tested"},
};

/// A file under tests/, which holds the reference folder.
std::string source(const std::string& file) {
  std::ifstream in(reference::path("../" + file));
  INFO("tests/" << file);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("every reference case of these sections is tested or left out for a reason") {
  const reference::json all = reference::load_json("expected.json");
  std::set<std::string> known;
  for (const reference::json& one : all.at("cases")) {
    if (!sections.contains(one.at("section").get<std::string>())) continue;
    const auto name = one.at("name").get<std::string>();
    INFO(name);
    CHECK(covered.contains(name) != left_out.contains(name));
    known.insert(name);
  }
  for (const auto& [name, file] : covered) CHECK(known.contains(name));
  for (const auto& [name, reason] : left_out) {
    INFO(name);
    CHECK(known.contains(name));
    CHECK_FALSE(reason.empty());
  }
}

TEST_CASE("the test that a reference case is said to have compares with it") {
  for (const auto& [name, file] : covered) {
    INFO(name << " in tests/" << file);
    CHECK(source(file).find("reference::check(\"" + name + "\"") != std::string::npos);
  }
}
