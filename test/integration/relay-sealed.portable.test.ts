/** The tests of the neighbour once more, in a runtime without FFI. */
import { mock } from "node:test";

const { getBuiltinModule } = process;
const withoutFfi = (id: string): object | undefined => (id === "node:ffi" ? undefined : getBuiltinModule(id));
mock.method(process, "getBuiltinModule", withoutFfi as typeof getBuiltinModule);

await import("./relay-sealed.test.ts");
