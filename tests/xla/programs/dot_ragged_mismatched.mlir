module @dot_ragged_mismatched attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%0: tensor<301x1001xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %1: tensor<1001x302xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<301x302xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %2 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<301x1001xf32>, tensor<1001x302xf32>) -> (tensor<301x302xf32>)
    %3 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[4,1]<=[4]}"} : (tensor<301x302xf32>) -> (tensor<301x302xf32>)
    return %3 : tensor<301x302xf32>
  }
}
