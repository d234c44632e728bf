module @embed_gradient_features_split attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<8000x512xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %1: tensor<64x128xi32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}, %2: tensor<64x128x512xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8]}"}) -> (tensor<8000x512xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) {
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<64x128xi32>)
    %5 = "stablehlo.compare"(%1, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi1>)
    %6 = "stablehlo.constant"() {value = dense<8000> : tensor<i32>} : () -> (tensor<i32>)
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<64x128xi32>)
    %8 = "stablehlo.add"(%1, %7) : (tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi32>)
    %9 = "stablehlo.select"(%5, %8, %1) : (tensor<64x128xi1>, tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi32>)
    %10 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> (tensor<f32>)
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<64x128x512xf32>)
    %12 = "stablehlo.multiply"(%11, %2) : (tensor<64x128x512xf32>, tensor<64x128x512xf32>) -> (tensor<64x128x512xf32>)
    %13 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<64x128xi32>)
    %15 = "stablehlo.constant"() {value = dense<7999> : tensor<i32>} : () -> (tensor<i32>)
    %16 = "stablehlo.broadcast_in_dim"(%15) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<64x128xi32>)
    %17 = "stablehlo.clamp"(%14, %9, %16) : (tensor<64x128xi32>, tensor<64x128xi32>, tensor<64x128xi32>) -> (tensor<64x128xi32>)
    %18 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %19 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<8000x512xf32>)
    %20 = "stablehlo.scatter"(%19, %17, %12) ({
      ^bb0(%21: tensor<f32>, %22: tensor<f32>):
      %23 = "stablehlo.add"(%21, %22) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%23) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>} : (tensor<8000x512xf32>, tensor<64x128xi32>, tensor<64x128x512xf32>) -> (tensor<8000x512xf32>)
    %24 = "stablehlo.custom_call"(%20) {call_target_name = "Sharding", mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<8000x512xf32>) -> (tensor<8000x512xf32>)
    return %24 : tensor<8000x512xf32>
  }
}
