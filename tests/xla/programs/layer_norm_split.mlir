module @layer_norm_split attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}, %1: tensor<1024xf32> {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %2: tensor<1024xf32> {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) -> (tensor<512x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %4 = "stablehlo.reduce"(%0, %3) ({
      ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<512x1024xf32>, tensor<f32>) -> (tensor<512xf32>)
    %8 = "stablehlo.reshape"(%4) : (tensor<512xf32>) -> (tensor<512x1xf32>)
    %9 = "stablehlo.constant"() {value = dense<1024.0> : tensor<f32>} : () -> (tensor<f32>)
    %10 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512x1xf32>)
    %11 = "stablehlo.divide"(%8, %10) : (tensor<512x1xf32>, tensor<512x1xf32>) -> (tensor<512x1xf32>)
    %12 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<512x1xf32>) -> (tensor<512x1024xf32>)
    %13 = "stablehlo.subtract"(%0, %12) : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %14 = "stablehlo.multiply"(%13, %13) : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %15 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %16 = "stablehlo.reduce"(%14, %15) ({
      ^bb0(%17: tensor<f32>, %18: tensor<f32>):
      %19 = "stablehlo.add"(%17, %18) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%19) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<512x1024xf32>, tensor<f32>) -> (tensor<512xf32>)
    %20 = "stablehlo.reshape"(%16) : (tensor<512xf32>) -> (tensor<512x1xf32>)
    %21 = "stablehlo.constant"() {value = dense<1024.0> : tensor<f32>} : () -> (tensor<f32>)
    %22 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512x1xf32>)
    %23 = "stablehlo.divide"(%20, %22) : (tensor<512x1xf32>, tensor<512x1xf32>) -> (tensor<512x1xf32>)
    %24 = "stablehlo.constant"() {value = dense<9.999999747378752e-06> : tensor<f32>} : () -> (tensor<f32>)
    %25 = "stablehlo.broadcast_in_dim"(%24) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512x1xf32>)
    %26 = "stablehlo.add"(%23, %25) : (tensor<512x1xf32>, tensor<512x1xf32>) -> (tensor<512x1xf32>)
    %27 = "stablehlo.rsqrt"(%26) : (tensor<512x1xf32>) -> (tensor<512x1xf32>)
    %28 = "stablehlo.broadcast_in_dim"(%27) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<512x1xf32>) -> (tensor<512x1024xf32>)
    %29 = "stablehlo.multiply"(%13, %28) : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %30 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 1>} : (tensor<1024xf32>) -> (tensor<512x1024xf32>)
    %31 = "stablehlo.multiply"(%29, %30) : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %32 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64: 1>} : (tensor<1024xf32>) -> (tensor<512x1024xf32>)
    %33 = "stablehlo.add"(%31, %32) : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    %34 = "stablehlo.custom_call"(%33) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    return %34 : tensor<512x1024xf32>
  }
}
