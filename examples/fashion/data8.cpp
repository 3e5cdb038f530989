// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST on the mesh `data=8`.
#include "train.hpp"

int main(int argc, char** argv) { return fashion::main_program<fashion::data8>(argc, argv); }
