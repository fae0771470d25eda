/** The TLS library of this thread, for tests of what is made of it. */
import { tlsLibrary } from "./tls.ts";

/** Null: no Linux, or no FFI. */
export const nativeTls = tlsLibrary.native;
