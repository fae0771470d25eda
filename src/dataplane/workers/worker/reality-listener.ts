import { createPrivateKey } from "node:crypto";
import type { RealityRules } from "#core/reality-rules.ts";
import type { Admitted } from "#transport/reality/server/admission.ts";
import { Answers } from "#transport/reality/server/answers.ts";
import { alpnKind, DestBoard } from "#transport/reality/server/dest-board.ts";
import { OwnCertificate } from "#transport/reality/server/own-certificate.ts";
import { openX25519Agreement } from "#transport/tls13/key-exchange.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";

const NOTHING = new Uint8Array(0);

/** By what this thread shakes hands with the clients of one listener. */
export class RealityListener {
  readonly answers: Answers;
  readonly #names: readonly string[];
  readonly #board: DestBoard;

  constructor(rules: RealityRules) {
    const { serverNames, shortIds, privateKey, maxTimeDifferenceMs, certificateKey, mldsa65Seed } = rules;
    this.#names = serverNames;
    this.#board = DestBoard.of(rules.board, serverNames.length);
    const key = createPrivateKey({ key: Buffer.from(certificateKey), type: "pkcs8", format: "der" });
    this.answers = new Answers({
      rules: {
        privateKey: openX25519Agreement(Buffer.from(privateKey)),
        serverNames: new Set(serverNames),
        shortIds: new Set(shortIds),
        maxTimeDifferenceMs,
      },
      certificate: new OwnCertificate(mldsa65Seed, key),
      nowMs: () => this.#board.nowMs(),
      later: (admitted) => this.#board.later(this.nameOf(admitted), alpnKind(admitted.protocols)),
    });
  }

  /** Its index among the listener's. */
  nameOf({ serverName }: Admitted): number {
    return this.#names.indexOf(serverName);
  }

  /** To dest; null: the main thread has to. */
  dial(): Dial | null {
    const dial = this.#board.dial();
    return dial && { ...dial, replyBytes: NOTHING };
  }
}
