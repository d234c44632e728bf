module @reduce_two_axes_scattered attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<64x65536xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<65536xf32> {mhlo.sharding = "{devices=[8]<=[8]}"}) {
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.reduce"(%0, %1) ({
      ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<64x65536xf32>, tensor<f32>) -> (tensor<65536xf32>)
    %6 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8]<=[8]}"} : (tensor<65536xf32>) -> (tensor<65536xf32>)
    return %6 : tensor<65536xf32>
  }
}
