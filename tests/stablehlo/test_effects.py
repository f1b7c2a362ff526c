"""What reaches outside: tokens, streams, channels, collectives, custom calls, composites."""

from __future__ import annotations

import numpy as np
import pytest

from tests.stablehlo.structure import opcodes, structure
from xlapy import stablehlo
from xlapy.hlo.attributes import CustomCallApiVersion, ReplicaGroups
from xlapy.hlo.evaluate import Interpreter, evaluate
from xlapy.hlo.graph import HloModule
from xlapy.support.errors import ParseError


def round_trip(text: str) -> HloModule:
    """The module of a text, which must stay the same when it is written and read again."""
    module = stablehlo.parse(text)
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)
    return module


STREAMS = """
func.func @main(%t: !stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) {
  %0:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  %a, %b, %t1 = "stablehlo.infeed"(%0#1) {infeed_config = ""}
    : (!stablehlo.token) -> (tensor<2xf32>, tensor<f32>, !stablehlo.token)
  %1 = stablehlo.add %0#0, %a : tensor<2xf32>
  %t2 = "stablehlo.outfeed"(%1, %b, %t1) {outfeed_config = ""}
    : (tensor<2xf32>, tensor<f32>, !stablehlo.token) -> !stablehlo.token
  %t3 = stablehlo.after_all %t2, %t1 : !stablehlo.token
  return %1, %t3 : tensor<2xf32>, !stablehlo.token
}
"""


def test_infeed_and_outfeed() -> None:
    module = round_trip(STREAMS.replace("@main(%t: !stablehlo.token)", "@main()").replace(
        "-> (tensor<2xf32>, !stablehlo.token) {", "-> (tensor<2xf32>, !stablehlo.token) {\n  %t = "
        "stablehlo.create_token : !stablehlo.token", 1))  # fmt: skip
    interpreter = Interpreter()
    interpreter.infeed().append(np.array([1, 2], np.float32))
    interpreter.infeed().append((np.array([10, 20], np.float32), np.array(5, np.float32)))
    total, _ = interpreter.run(module)
    assert total.tolist() == [11, 22]
    ((sent, scalar),) = interpreter.outfeed()
    assert sent.tolist() == [11, 22] and scalar == 5


CHANNELS = """
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, !stablehlo.token) {
  %t = stablehlo.create_token : !stablehlo.token
  %t1 = "stablehlo.send"(%x, %t) {
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true
  } : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  %y, %t2 = "stablehlo.recv"(%t1) {
    channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, is_host_transfer = true
  } : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %y, %t2 : tensor<2xf32>, !stablehlo.token
}
"""


def test_send_and_recv_become_pairs() -> None:
    module = round_trip(CHANNELS)
    names = opcodes(module)
    assert [name for name in names if name.startswith(("send", "recv"))] == ["send", "send-done", "recv", "recv-done"]
    (recv,) = (i for i in module.entry.post_order() if i.opcode == "recv")
    assert recv.attributes["channel_id"] == 2 and recv.attributes["is_host_transfer"]
    text = stablehlo.to_text(module)
    assert "handle = 1, type = 2>" in text and "handle = 2, type = 3>" in text


ALL_REDUCE = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%operand: tensor<4xi64>) -> tensor<4xi64> {
    %result = "stablehlo.all_reduce"(%operand) ({
      ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
        %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
        "stablehlo.return"(%0) : (tensor<i64>) -> ()
    }) {
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = 7, type = 0>
    } : (tensor<4xi64>) -> tensor<4xi64>
    return %result : tensor<4xi64>
  }
}
"""


def test_all_reduce() -> None:
    module = round_trip(ALL_REDUCE)
    assert module.config.num_replicas == 2
    (reduction,) = (i for i in module.entry.post_order() if i.opcode == "all-reduce")
    assert reduction.attributes["replica_groups"] == ReplicaGroups(((0, 1),))
    assert reduction.attributes["channel_id"] == 7 and reduction.attributes["use_global_device_ids"]
    results = Interpreter().run_parallel(module, [[np.array([1, 2, 3, 4])], [np.array([5, 6, 7, 8])]])
    assert [result.tolist() for result in results] == [[6, 8, 10, 12]] * 2


def test_process_ids() -> None:
    module = round_trip("""
    func.func @main() -> (tensor<ui32>, tensor<ui32>) {
      %0 = stablehlo.replica_id : tensor<ui32>
      %1 = "stablehlo.partition_id"() : () -> tensor<ui32>
      return %0, %1 : tensor<ui32>, tensor<ui32>
    }""")
    assert evaluate(module) == (0, 0)


def custom_call(attributes: str, call: str = "stablehlo.custom_call @foo(%x)") -> str:
    return f"""
    func.func private @helper(%a: tensor<f64>) -> tensor<f64> {{ return %a : tensor<f64> }}
    func.func @main(%x: tensor<f64>) -> tensor<f64> {{
      %0 = {call} {{{attributes}}} : (tensor<f64>) -> tensor<f64>
      return %0 : tensor<f64>
    }}"""


def test_custom_call() -> None:
    module = round_trip(
        custom_call(
            'call_target_name = "foo", has_side_effect = true, backend_config = "b\\22ar", api_version = 2 : i32, '
            "called_computations = [@helper], output_operand_aliases = [#stablehlo.output_operand_alias<"
            "output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]",
            '"stablehlo.custom_call"(%x)',
        )
    )
    call = module.entry.root
    assert call.attributes["target"] == "foo" and call.attributes["has_side_effect"]
    assert call.attributes["api_version"] is CustomCallApiVersion.STATUS_RETURNING
    assert call.extra["backend_config"] == r'"b\"ar"'
    assert [computation.name for computation in call.called] == ["helper"]
    assert call.attributes["output_to_operand_aliasing"][0].operand == 0


def test_custom_call_with_typed_configuration() -> None:
    config = 'backend_config = {name = "x", sizes = [1 : i64, 2 : i64], on = true}, api_version = 4 : i32'
    call = round_trip(custom_call(config)).entry.root
    assert call.extra["backend_config"] == '{name = "x", sizes = [1 : i64, 2 : i64], on = true}'


def test_sharding_is_the_identity() -> None:
    module = stablehlo.parse(custom_call('mhlo.sharding = "{replicated}"', "stablehlo.custom_call @Sharding(%x)"))
    assert opcodes(module) == ["parameter"]


def test_unknown_api_version() -> None:
    with pytest.raises(ParseError, match="no api_version 9"):
        stablehlo.parse(custom_call("api_version = 9 : i32"))


def test_composites_of_chlo_are_its_operations() -> None:
    """As portable artifacts have them. What they are made of is not looked at."""
    module = stablehlo.parse("""
    func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
      %0 = stablehlo.composite "chlo.erf" %x {decomposition = @erf, version = 1 : i32}
        : (tensor<4xf32>) -> tensor<4xf32>
      %1:2 = stablehlo.composite "chlo.top_k" %0 {
        composite_attributes = {k = 2 : i64}, decomposition = @top_k, version = 1 : i32
      } : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
      return %1#0, %1#1 : tensor<2xf32>, tensor<2xi32>
    }
    func.func private @erf(%a: tensor<4xf32>) -> tensor<4xf32> {
      return %a : tensor<4xf32>
    }
    func.func private @top_k(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
      %0 = stablehlo.slice %a [0:2] : (tensor<4xf32>) -> tensor<2xf32>
      %1 = stablehlo.constant dense<0> : tensor<2xi32>
      return %0, %1 : tensor<2xf32>, tensor<2xi32>
    }""")
    assert {"erf", "topk"} <= set(opcodes(module)) and len(list(module.computations())) == 1
    values, places = evaluate(module, np.float32([0, 2, 1, -1]))
    assert places.tolist() == [1, 2]
    np.testing.assert_allclose(values, [0.99532227, 0.84270079], rtol=1e-6)


def test_composite_remembers_its_name() -> None:
    module = round_trip("""
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.composite "my.twice" %x {
        composite_attributes = {n = 2 : i64}, decomposition = @twice, version = 3 : i32
      } : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @twice(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.add %a, %a : tensor<f32>
      return %0 : tensor<f32>
    }""")
    call = module.entry.root
    assert call.attributes["is_composite"]
    assert 'composite.name="my.twice"' in call.extra["frontend_attributes"]
    assert "version = 3 : i32" in stablehlo.to_text(module)
    assert evaluate(module, np.float32(4)) == 8


def test_truth_values_are_ordered_as_numbers() -> None:
    module = stablehlo.parse("""
    func.func @main(%x: tensor<5xi1>) -> (tensor<3xi1>, tensor<3xi32>) {
      %0:2 = chlo.top_k(%x, k = 3) : tensor<5xi1> -> (tensor<3xi1>, tensor<3xi32>)
      return %0#0, %0#1 : tensor<3xi1>, tensor<3xi32>
    }""")
    values, places = evaluate(module, np.array([False, True, False, False, True]))
    assert values.tolist() == [True, True, False] and places.tolist() == [1, 4, 0]
