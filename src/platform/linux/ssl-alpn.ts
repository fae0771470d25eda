/** The choice of a protocol (ALPN, RFC 7301) on the accepting side of the libssl inside the Node binary. */
import type * as Ffi from "node:ffi";
import { byteAt, valueAt } from "#lib/at.ts";

const SSL_TLSEXT_ERR_OK = 0;
const SSL_TLSEXT_ERR_ALERT_FATAL = 2;

/** What a context is given with `openAlpnChoice`, in the order of preference: LENGTH(2, native), then LENGTH(1) NAME. Its memory must stay. */
export function alpnList(names: readonly string[]): Uint8Array<ArrayBuffer> {
  const list = Buffer.concat(names.flatMap((name) => [Buffer.of(name.length), Buffer.from(name, "latin1")]));
  const made = new Uint8Array(new ArrayBuffer(2 + list.length));
  new Uint16Array(made.buffer, 0, 1)[0] = list.length;
  made.set(list, 2);
  return made;
}

/**
 * Address of a callback of this thread, and of no other: the library calls it from within a handshake, and one that another
 * thread does would abort the process, as an exception in it would. `lib` must stay.
 */
export function openAlpnChoice(ffi: typeof Ffi, lib: Ffi.DynamicLibrary): bigint {
  return lib.registerCallback(
    { arguments: ["pointer", "pointer", "pointer", "pointer", "u32", "pointer"], return: "i32" },
    (_ssl, out, outLength, offered, size, list) => {
      try {
        return choose(ffi, [out as bigint, outLength as bigint], [offered as bigint, size], list as bigint);
      } catch {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
      }
    },
  );
}

/** What is chosen is pointed to where it lies. */
function choose(
  ffi: typeof Ffi,
  [out, outLength]: readonly [bigint, bigint],
  [offered, size]: readonly [bigint, number],
  list: bigint,
): number {
  const theirs = placesIn(ffi.toBuffer(offered, size, true));
  const ours = placesIn(ffi.toBuffer(list + 2n, ffi.getUint16(list, 0), true));
  const chosen = [...ours.keys()].find((name) => theirs.has(name));
  if (chosen === undefined) return SSL_TLSEXT_ERR_ALERT_FATAL;
  ffi.setUint64(out, 0, offered + BigInt(valueAt(theirs, chosen)));
  ffi.setUint8(outLength, 0, chosen.length);
  return SSL_TLSEXT_ERR_OK;
}

/** Where each name begins. */
function placesIn(list: Buffer): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (let at = 0; at < list.length; at += 1 + byteAt(list, at)) {
    const name = list.toString("latin1", at + 1, at + 1 + byteAt(list, at));
    if (!places.has(name)) places.set(name, at + 1);
  }
  return places;
}
