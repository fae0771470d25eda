/** Imported before anything else: a runtime without `node:ffi`, as other systems and older versions are. */
import { mock } from "node:test";

const { getBuiltinModule } = process;
const withoutFfi = (id: string): object | undefined => (id === "node:ffi" ? undefined : getBuiltinModule(id));
mock.method(process, "getBuiltinModule", withoutFfi as typeof getBuiltinModule);
