module @reduce_columns attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x4096xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<4096xf32> {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) {
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.reduce"(%0, %1) ({
      ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1024x4096xf32>, tensor<f32>) -> (tensor<4096xf32>)
    %6 = "stablehlo.custom_call"(%2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<4096xf32>) -> (tensor<4096xf32>)
    return %6 : tensor<4096xf32>
  }
}
