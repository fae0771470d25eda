/** The tests of the neighbour once more, in a runtime without FFI. */
import "../support/without-ffi.ts";
import "./relay-sealed.test.ts";
