/** What ports hold besides their sockets lies outside the heap: somebody has to free it where their thread cannot. */
import { freeGiven } from "#platform/aead.ts";
import { nativeTls } from "#platform/tls.ts";
import { ANYTLS, PLAIN, SEALED, TLS, type PortKind } from "./port.ts";

const freeTls = (word: (at: number) => bigint): void => nativeTls()?.ssl.free(word(0));

const frees: Readonly<Record<PortKind, (word: (at: number) => bigint) => void>> = {
  [PLAIN]: () => {},
  [TLS]: freeTls,
  [ANYTLS]: freeTls,
  [SEALED]: (word) => {
    freeGiven(word(0));
    freeGiven(word(1));
  },
};

/** For the main thread, of a port whose thread has ended or could not make it; the words are those of its plan. */
export function freeOrphan(kind: PortKind, words: Float64Array): void {
  frees[kind]((at) => BigInt(words[at] as number));
}
