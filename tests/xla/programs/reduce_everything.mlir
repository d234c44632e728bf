module @reduce_everything attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %1 = "stablehlo.multiply"(%0, %0) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %3 = "stablehlo.reduce"(%1, %2) ({
      ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<1024x1024xf32>, tensor<f32>) -> (tensor<f32>)
    %7 = "stablehlo.sqrt"(%3) : (tensor<f32>) -> (tensor<f32>)
    %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1024x1024xf32>)
    %9 = "stablehlo.divide"(%0, %8) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %10 = "stablehlo.custom_call"(%9) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    return %10 : tensor<1024x1024xf32>
  }
}
