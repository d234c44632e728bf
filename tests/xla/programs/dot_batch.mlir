module @dot_batch attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<8x256x128xf32> {mhlo.sharding = "{devices=[2,1,1,4]<=[8] last_tile_dim_replicate}"}, %1: tensor<8x128x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8]}"}) -> (tensor<8x256x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8]}"}) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<8x256x128xf32>, tensor<8x128x256xf32>) -> (tensor<8x256x256xf32>)
    %3 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,1,4]<=[8]}"} : (tensor<8x256x256xf32>) -> (tensor<8x256x256xf32>)
    return %3 : tensor<8x256x256xf32>
  }
}
