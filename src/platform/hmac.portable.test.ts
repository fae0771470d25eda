/** The tests of the neighbour once more, in a runtime without FFI. */
import "../../test/support/without-ffi.ts";
import "./hmac.test.ts";
