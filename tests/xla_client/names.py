"""The names of jaxlib 0.4.38's xla_client, with the parameters of its op functions."""

# ruff: noqa: E501 (one form of a function per line)

OPS = """
Parameter builder parameter_number shape name replicated_at_leaf_buffers
Constant builder literal
ConstantLiteral builder literal
Iota builder shape iota_dimension
Iota builder type size
Tuple builder elements
GetTupleElement tuple_data index
Call builder computation operands
Conditional branch_index branch_computations branch_operands
Conditional predicate true_operand true_computation false_operand false_computation
While condition body init
Map builder operands computation dimensions static_operands
CreateToken builder
AfterAll builder tokens
OptimizationBarrier arg
NextAfter from to
Igamma a x
Igammac a x
IgammaGradA a x
RandomGammaGrad a x
RegularizedIncompleteBeta a b x
Zeta x q
Broadcast operand sizes
BroadcastInDim operand shape broadcast_dimensions
Reshape operand dimensions new_sizes
Reshape operand new_sizes
Collapse operand dimensions
Transpose operand permutation
Rev operand dimensions
ConcatInDim builder operands dimension
Slice operand start_indices limit_indices strides
SliceInDim operand start_index limit_index stride dimno
DynamicSlice operand start_indices slice_sizes
DynamicUpdateSlice operand update start_indices
Pad operand padding_value padding_config
Gather a start_indices dimension_numbers slice_sizes indices_are_sorted
Scatter input scatter_indices updates update_computation dimension_numbers indices_are_sorted unique_indices
Scatter inputs scatter_indices updates update_computation dimension_numbers indices_are_sorted unique_indices
Select pred on_true on_false
Clamp min operand max
ConvertElementType operand new_element_type
BitcastConvertType operand new_element_type
ReducePrecision operand exponent_bits mantissa_bits
DynamicReshape operand dim_sizes new_size_bounds dims_are_dynamic
GetDimensionSize operand dimension
SetDimensionSize operand val dimension
RemoveDynamicDimension operand dimension
Dot lhs rhs precision_config preferred_element_type
DotGeneral lhs rhs dimension_numbers precision_config preferred_element_type
ConvGeneralDilated lhs rhs window_strides padding lhs_dilation rhs_dilation dimension_numbers feature_group_count batch_group_count precision_config preferred_element_type window_reversal
Reduce builder operands init_values computation dimensions_to_reduce
ReduceWindowWithGeneralPadding operand init_value computation window_dimensions window_strides base_dilations window_dilations padding
ReduceWindowWithGeneralPadding operands init_values computation window_dimensions window_strides base_dilations window_dilations padding
SelectAndScatterWithGeneralPadding operand select window_dimensions window_strides padding source init_value scatter
Sort builder operands comparator dimension is_stable
TopK input k
ApproxTopK builder operands init_values top_k reduction_dim comparator recall_target aggregate_to_topk reduction_input_size_override
ApproxTopKFallback builder operands init_values top_k reduction_dim comparator recall_target aggregate_to_topk reduction_input_size_override
ApproxTopKReductionOutputSize input_size rank top_k recall_target aggregate_to_topk input_size_override
Cholesky a lower
TriangularSolve a b left_side lower unit_diagonal transpose_a
LU operand
QR operand full_matrices
QrDecomposition operand
ProductOfElementaryHouseholderReflectors a taus
Eigh a lower max_iter epsilon sort_eigenvalues
SVD a max_iter epsilon
Fft operand fft_type fft_length
RngUniform a b shape
RngNormal mu sigma shape
RngBitGenerator algorithm initial_state shape
AllGather operand all_gather_dimension shard_count replica_groups channel_id shape_with_layout use_global_device_ids
AllReduce operand computation replica_groups channel_id shape_with_layout use_global_device_ids
ReduceScatter operand computation scatter_dimension shard_count replica_groups channel_id layout use_global_device_ids
AllToAll operand split_dimension concat_dimension split_count replica_groups layout channel_id
CollectivePermute operand source_target_pairs channel_id
CrossReplicaSum operand replica_groups
ReplicaId builder
InfeedWithToken token shape config
OutfeedWithToken operand token shape_with_layout outfeed_config
SendToHost operand token shape_with_layout handle
RecvFromHost token shape handle
CustomCall builder call_target_name operands shape opaque has_side_effect schedule api_version
CustomCallWithLayout builder call_target_name operands shape_with_layout operand_shapes_with_layout opaque has_side_effect schedule api_version
CustomCallWithAliasing builder call_target_name operands shape_with_layout operand_shapes_with_layout opaque has_side_effect output_operand_aliasing literal schedule api_version
CustomCallWithComputation builder call_target_name operands computation shape opaque has_side_effect output_operand_aliasing literal schedule api_version
"""
"""One form of a function per line: its name, then its parameters."""

BINARY = [
    "Eq",
    "Ne",
    "Ge",
    "Gt",
    "Lt",
    "Le",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Rem",
    "Max",
    "Min",
    "And",
    "Or",
    "Xor",
    "ShiftLeft",
    "ShiftRightArithmetic",
    "ShiftRightLogical",
    "Atan2",
    "Pow",
    "Complex",
]
"""lhs rhs broadcast_dimensions"""

UNARY = [
    "Not",
    "PopulationCount",
    "Clz",
    "Exp",
    "Expm1",
    "Floor",
    "Ceil",
    "Round",
    "Log",
    "Log1p",
    "Sign",
    "Cos",
    "Sin",
    "Tan",
    "Tanh",
    "IsFinite",
    "Neg",
    "Sqrt",
    "Rsqrt",
    "Cbrt",
    "Square",
    "Reciprocal",
    "Abs",
    "Erf",
    "Erfc",
    "ErfInv",
    "Lgamma",
    "Digamma",
    "BesselI0e",
    "BesselI1e",
    "Acos",
    "Asin",
    "Atan",
    "Acosh",
    "Asinh",
    "Atanh",
    "Cosh",
    "Sinh",
    "Real",
    "Imag",
    "Conj",
]

MODULE = [
    "XlaBuilder",
    "XlaComputation",
    "XlaOp",
    "Shape",
    "ProgramShape",
    "ShapeIndex",
    "Layout",
    "Client",
    "Device",
    "DeviceList",
    "Memory",
    "ArrayImpl",
    "LoadedExecutable",
    "CompileOptions",
    "DeviceAssignment",
    "DeviceTopology",
    "HostBufferSemantics",
    "FftType",
    "PrimitiveType",
    "PaddingType",
    "OpSharding",
    "HloSharding",
    "Sharding",
    "NamedSharding",
    "SingleDeviceSharding",
    "GSPMDSharding",
    "PmapSharding",
    "PjRtLayout",
    "Traceback",
    "Frame",
    "XlaRuntimeError",
    "AutotuneCacheMode",
    "ArrayCopySemantics",
    "OpMetadata",
    "PaddingConfig",
    "PaddingConfigDimension",
    "DotDimensionNumbers",
    "ConvolutionDimensionNumbers",
    "PrecisionConfig",
    "ResultAccuracy",
    "GatherDimensionNumbers",
    "ScatterDimensionNumbers",
    "ReplicaGroup",
    "shape_from_pyval",
    "dtype_to_etype",
    "make_padding_config",
    "make_dot_dimension_numbers",
    "make_convolution_dimension_numbers",
    "make_replica_groups",
    "window_padding_type_to_pad_values",
    "CurrentSourceInfoMetadata",
    "register_custom_call_target",
    "register_custom_type_id",
    "custom_call_targets",
    "make_cpu_client",
    "tracebacks",
    "heap_profile",
    "load_pjrt_plugin_dynamically",
    "make_c_api_client",
    "get_local_backend",
    "LocalBackend",
    "Buffer",
    "execute_with_python_values",
    "execute_with_python_values_replicated",
    "transfer_to_infeed",
    "transfer_from_outfeed",
    "XLA_ELEMENT_TYPE_TO_DTYPE",
    "DTYPE_TO_XLA_ELEMENT_TYPE",
    "xla_platform_names",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "_version",
    "mlir_api_version",
    "ops",
    "_xla",
    "profiler",
]

EXTENSION = [
    "hlo_module_from_text",
    "hlo_module_to_dot_graph",
    "hlo_module_cost_analysis",
    "get_tfrt_cpu_client",
    "make_gloo_tcp_collectives",
    "make_mpi_collectives",
    "HloDCE",
    "CallInliner",
    "FlattenCallGraph",
    "TupleSimplifier",
    "mlir",
    "ops",
    "XlaBuilder",
    "XlaOp",
    "Shape",
    "ProgramShape",
    "HloModule",
    "HloComputation",
    "HloPrintOptions",
    "CompileOptions",
    "ExecutableBuildOptions",
    "DebugOptions",
    "CompiledMemoryStats",
    "ExecuteResults",
    "Token",
    "ShardedToken",
    "OpSharding_Type",
    "PrecisionConfig_Precision",
    "ResultAccuracy_Mode",
    "XlaRuntimeError",
]

MLIR = [
    "xla_computation_to_mlir_module",
    "mlir_module_to_xla_computation",
    "serialize_portable_artifact",
    "deserialize_portable_artifact",
    "refine_polymorphic_shapes",
]

METHODS = {
    "XlaBuilder": "build Build get_shape GetShape get_program_shape is_constant set_op_metadata clear_op_metadata "
    "set_sharding clear_sharding set_frontend_attributes clear_frontend_attributes setup_alias",
    "XlaComputation": "as_hlo_text as_hlo_dot_graph as_hlo_module get_hlo_module as_serialized_hlo_module_proto "
    "program_shape hash name",
    "Shape": "array_shape tuple_shape scalar_shape token_shape dimensions rank element_type numpy_dtype "
    "xla_element_type is_tuple is_array is_token is_static is_dynamic is_dynamic_dimension set_dynamic_dimension "
    "tuple_shapes leaf_count layout with_major_to_minor_layout_if_absent to_serialized_proto",
    "ProgramShape": "parameter_shapes result_shape",
    "Layout": "minor_to_major tiling element_size_in_bits to_string",
    "_xla.HloModule": "name to_string computations as_serialized_hlo_module_proto from_serialized_hlo_module_proto "
    "spmd_output_sharding spmd_parameters_shardings make_nonfusion_computations",
    "_xla.HloComputation": "name render_html instructions",
    "_xla.HloInstruction": "name opcode shape users operands to_string get_frontend_attribute set_frontend_attribute",
    "_xla.HloPrintOptions": "short_parsable canonical fingerprint",
    "Client": "platform platform_version runtime_type device_count local_device_count devices local_devices "
    "process_index host_id live_buffers live_arrays live_executables buffer_from_pyval compile compile_and_load "
    "serialize_executable deserialize_executable get_emit_python_callback_descriptor "
    "make_python_callback_from_host_send_and_recv create_channel_handle create_device_to_host_channel_handle "
    "create_host_to_device_channel_handle get_default_device_assignment defragment heap_profile",
    "Device": "process_index platform device_kind memory_stats transfer_to_infeed transfer_from_outfeed live_buffers",
    "LoadedExecutable": "execute execute_with_token execute_sharded execute_sharded_on_local_devices "
    "execute_sharded_on_local_devices_with_tokens hlo_modules cost_analysis get_compiled_memory_stats "
    "size_of_generated_code_in_bytes local_devices fingerprint compile_options get_output_shardings "
    "get_parameter_shardings get_parameter_layouts get_output_layouts keep_alive delete",
    "_xla.ExecuteResults": "disassemble_into_single_device_arrays disassemble_prefix_into_single_device_arrays "
    "consume_with_handlers consume_token",
    "Buffer": "to_py shape dtype block_until_ready is_ready is_deleted delete unsafe_buffer_pointer "
    "on_device_size_in_bytes copy_to_device xla_shape device platform __array__ __dlpack__",
    "CompileOptions": "num_replicas num_partitions device_assignment argument_layouts parameter_is_tupled_arguments "
    "tuple_arguments compile_portable_executable profile_version env_option_overrides SerializeAsString "
    "ParseFromString",
    "_xla.ExecutableBuildOptions": "result_layout num_replicas num_partitions use_spmd_partitioning "
    "use_auto_spmd_partitioning auto_spmd_partitioning_mesh_shape auto_spmd_partitioning_mesh_ids "
    "allow_spmd_sharding_propagation_to_output allow_spmd_sharding_propagation_to_parameters device_assignment "
    "use_shardy_partitioner exec_time_optimization_effort memory_fitting_effort fdo_profile",
    "_xla.DebugOptions": "xla_cpu_enable_fast_math xla_cpu_fast_math_honor_infs xla_cpu_fast_math_honor_nans "
    "xla_cpu_fast_math_honor_division xla_cpu_fast_math_honor_functions xla_backend_optimization_level "
    "xla_llvm_disable_expensive_passes xla_disable_hlo_passes xla_enable_hlo_passes_only xla_dump_to "
    "xla_dump_hlo_as_text xla_dump_hlo_as_proto xla_dump_hlo_as_dot xla_dump_hlo_as_html xla_dump_hlo_as_url "
    "xla_dump_hlo_pass_re xla_dump_hlo_module_re xla_dump_hlo_pipeline_re xla_dump_max_hlo_modules "
    "xla_force_host_platform_device_count",
    "_xla.CompiledMemoryStats": "generated_code_size_in_bytes argument_size_in_bytes output_size_in_bytes "
    "alias_size_in_bytes temp_size_in_bytes host_temp_size_in_bytes serialized_hlo_proto",
    "DeviceAssignment": "create replica_count computation_count serialize",
}
"""The methods, properties and fields of classes, by the class."""

ENUMERATORS = {
    "PrimitiveType": "PRED 1 S8 2 S16 3 S32 4 S64 5 U8 6 U16 7 U32 8 U64 9 F16 10 F32 11 F64 12 TUPLE 13 OPAQUE_TYPE 14 "
    "C64 15 BF16 16 TOKEN 17 C128 18 F8E5M2 19 F8E4M3FN 20 S4 21 U4 22 F8E4M3B11FNUZ 23 F8E5M2FNUZ 24 F8E4M3FNUZ 25 "
    "F8E4M3 28 F8E3M4 29 F4E2M1FN 32 F8E8M0FNU 33 F6E3M2FN 35 F6E2M3FN 36",
    "FftType": "FFT 0 IFFT 1 RFFT 2 IRFFT 3",
    "ops.RandomAlgorithm": "RNG_DEFAULT 0 RNG_THREE_FRY 1 RNG_PHILOX 2",
    "ops.TriangularSolveOptions_Transpose": "TRANSPOSE_INVALID 0 NO_TRANSPOSE 1 TRANSPOSE 2 ADJOINT 3",
    "ops.CustomCallSchedule": "SCHEDULE_NONE 0 SCHEDULE_LATEST 1 SCHEDULE_EARLIEST 2",
    "ops.CustomCallApiVersion": "API_VERSION_ORIGINAL 1 API_VERSION_STATUS_RETURNING 2 "
    "API_VERSION_STATUS_RETURNING_UNIFIED 3 API_VERSION_TYPED_FFI 4",
    "OpSharding.Type": "REPLICATED 0 MAXIMAL 1 TUPLE 2 OTHER 3 MANUAL 4 UNKNOWN 5 UNREDUCED 6",
    "HostBufferSemantics": "IMMUTABLE_ONLY_DURING_CALL 0 IMMUTABLE_UNTIL_TRANSFER_COMPLETES 1 ZERO_COPY 2",
}
