"""Programs in HLO text that several tests read."""

# ruff: noqa: E501 (programs and tables are kept on their lines)

EVERYTHING = """\
HloModule everything, is_scheduled=true, entry_computation_layout={(f32[4]{0}, s32[])->f32[4]{0}}, buffer_donor={ (1, {}) }, input_output_alias={ {}: (0, {}, may-alias) }, replica_count=2

FileNames
1 "model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=41 end_line=41 column=3 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY main {
  x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}, frontend_attributes={a="{b",c="\\"d\\""}
  n = s32[] parameter(1) // behind its first use in the order of numbers
  c = f32[2,3]{0,1:T(8,128)(2,1)S(1)} constant({ {1, -2.5, nan}, {-nan(0x12), inf, -inf} }), metadata={op_name="jit(f)/x \\"q\\"" stack_frame_id=1}
  p = f32[4,5] pad(c, f32[] constant(0)), padding=0_0_2x1_1
  r = f32[4] reduce(p, f32[] constant(0)), dimensions={1}, to_apply=add
  t = (s32[], /*index=1*/f32[4]) tuple(n, r)
  w = (s32[], f32[4]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"10"}}
  d = f32[4,4] dot(f32[4,1] reshape(x), f32[1,4] reshape(r)), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,default}
  cc = c64[2] constant({(1,2),(3,-4)}), control-predecessors={d, %w}
  sl = f32[2,4] slice(d), slice={[0:4:2],[0:4]}
  dt = (f32[2,2], u32[], token[]) recv(after-all()), channel_id=7, is_host_transfer=true
  rd = (f32[2,2], token[]) recv-done(dt), channel_id=7
  kt = (f32[], (s32[2], pred[])) constant((1.5, ({1,2}, true)))
  ar = f32[4] all-reduce(r), replica_groups=[2,2]<=[2,2]T(1,0), to_apply=add, channel_id=3
  branch = pred[] constant(true)
  two.a = f32[] constant(2)
  two = f32[] conditional(branch, two.a, two.a), true_computation=negated, false_computation=same
  three = f32[] conditional(n, two.a, two.a, two.a), branch_computations={negated, same, negated}
  cu = f32[2]{0} custom-call(x), custom_call_target="my \\"target\\"", api_version=API_VERSION_TYPED_FFI, operand_layout_constraints={f32[4]{0}}
  lt = pred[4] compare(x, ar), direction=LT, type=TOTALORDER
  bounded = f32[<=4] set-dimension-size(x, n), dimensions={0}
  cat = f32[8] concatenate(x, ar), dimensions={0}
  io = s32[2,3] iota(), iota_dimension=1
  ds = f32[2] dynamic-slice(x, n), dynamic_slice_sizes={2}
  ROOT g = f32[4] get-tuple-element(w), index=1
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

negated { v = f32[] parameter(0)  ROOT m = negate(v) }
same (v: f32[]) -> f32[] { ROOT v = f32[] parameter(0) }

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element((s32[], f32[4]{0}) %s), index=0
  ROOT %t = (s32[], f32[4]{0}) tuple(s32[] add(%i, s32[] constant(1)), f32[4]{0} get-tuple-element(%s), index=1)
}, execution_thread="main"

cond {
  s = (s32[], f32[4]{0}) parameter(0)
  ROOT c = pred[] compare(s32[] get-tuple-element(s), index=0, s32[] constant(10)), direction=LT
}
"""
