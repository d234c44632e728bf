module @dot_both_ways attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x512xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}, %1: tensor<512x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) -> (tensor<512x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}, tensor<512x256xf32> {mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x256xf32>) -> (tensor<512x256xf32>)
    %3 = "stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<512x512xf32>) -> (tensor<512x512xf32>)
    %4 = "stablehlo.dot_general"(%3, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x512xf32>, tensor<512x256xf32>) -> (tensor<512x256xf32>)
    %5 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<512x256xf32>) -> (tensor<512x256xf32>)
    %6 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<512x256xf32>) -> (tensor<512x256xf32>)
    return %5, %6 : tensor<512x256xf32>, tensor<512x256xf32>
  }
}
