module @mlp_ragged attributes {mhlo.num_partitions = 6 : i32} {
  func.func public @main(%0: tensor<1001x250xf32> {mhlo.sharding = "{devices=[2,1,3]<=[6] last_tile_dim_replicate}"}, %1: tensor<250x1000xf32> {mhlo.sharding = "{devices=[1,3,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}, %2: tensor<1000x250xf32> {mhlo.sharding = "{devices=[3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}) -> (tensor<1001x250xf32> {mhlo.sharding = "{devices=[2,1,3]<=[6] last_tile_dim_replicate}"}) {
    %3 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<1001x250xf32>, tensor<250x1000xf32>) -> (tensor<1001x1000xf32>)
    %4 = "stablehlo.multiply"(%3, %3) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %5 = "stablehlo.multiply"(%3, %4) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %6 = "stablehlo.constant"() {value = dense<0.044714998453855515> : tensor<f32>} : () -> (tensor<f32>)
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x1000xf32>)
    %8 = "stablehlo.multiply"(%5, %7) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %9 = "stablehlo.add"(%3, %8) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %10 = "stablehlo.constant"() {value = dense<0.7978845834732056> : tensor<f32>} : () -> (tensor<f32>)
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x1000xf32>)
    %12 = "stablehlo.multiply"(%9, %11) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %13 = "stablehlo.tanh"(%12) : (tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %14 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> (tensor<f32>)
    %15 = "stablehlo.broadcast_in_dim"(%14) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x1000xf32>)
    %16 = "stablehlo.add"(%13, %15) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %17 = "stablehlo.multiply"(%3, %16) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %18 = "stablehlo.constant"() {value = dense<0.5> : tensor<f32>} : () -> (tensor<f32>)
    %19 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x1000xf32>)
    %20 = "stablehlo.multiply"(%17, %19) : (tensor<1001x1000xf32>, tensor<1001x1000xf32>) -> (tensor<1001x1000xf32>)
    %21 = "stablehlo.dot_general"(%20, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<1001x1000xf32>, tensor<1000x250xf32>) -> (tensor<1001x250xf32>)
    %22 = "stablehlo.custom_call"(%21) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,1,3]<=[6] last_tile_dim_replicate}"} : (tensor<1001x250xf32>) -> (tensor<1001x250xf32>)
    return %22 : tensor<1001x250xf32>
  }
}
