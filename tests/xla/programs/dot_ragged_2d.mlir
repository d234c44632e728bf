module @dot_ragged_2d attributes {mhlo.num_partitions = 6 : i32} {
  func.func public @main(%0: tensor<301x500xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}, %1: tensor<500x700xf32> {mhlo.sharding = "{devices=[3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}) -> (tensor<301x700xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<301x500xf32>, tensor<500x700xf32>) -> (tensor<301x700xf32>)
    %3 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,3]<=[6]}"} : (tensor<301x700xf32>) -> (tensor<301x700xf32>)
    return %3 : tensor<301x700xf32>
  }
}
