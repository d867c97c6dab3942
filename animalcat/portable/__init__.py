"""Mathematics that gives the same bits on every x86-64 processor.

The C library, NumPy, SciPy and OpenBLAS choose code by what a processor has (AVX2, AVX-512, FMA),
and the last bits of exponentials, logarithms, angles and products of matrices differ by it. What
decides anything (choices, posteriors, rates, alarms, what a simulator records) is computed here
instead: from additions, products, quotients and square roots alone, which IEEE 754 rounds exactly,
each in an order that is written down. Compiled code may use wide registers for it, but it may
neither reorder a sum nor fuse a product with an addition.

* `scalars`: functions of Python's floats, without any library;
* `compiled`: some of them for code that is compiled;
* `products`: products of small matrices, without Numba;
* `arrays`: functions of NumPy's arrays;
* `kernels`: what `arrays` runs, compiled by Numba;
* `sparing`: Numba without what it imports of SciPy and nothing here needs.

Sums of NumPy itself (`sum`, `mean`, `cumsum`, `einsum` without optimisation) have an order that
does not depend on the processor, and are used as they are.
"""
