// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST on the mesh `one`.
#include "train.hpp"

int main(int argc, char** argv) { return fashion::main_program<fashion::one>(argc, argv); }
