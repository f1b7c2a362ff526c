"""The only package that knows xlapy: records operations into an XlaBuilder, and compiles what was recorded.

`recorder.py` has what every framework needs: parameters, constants, element-wise operations, shapes, products, sums.
The other files are families of operations, as functions of handles: `windows.py`, `indexing.py`, `normalization.py`,
`random.py`, `loops.py`.

Operations here are as strict as HLO: operands agree in shape and type. Broadcasting, Python numbers and derivatives are
the business of the tensors above.
"""
