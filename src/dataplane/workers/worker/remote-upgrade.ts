import type { UpgradeRecipe } from "#core/wire-recipe.ts";
import { UNDERLAY_FAILED } from "#dataplane/workers/shared/request-memory.ts";
import { decodeHead } from "#transport/http-head.ts";
import { Upgrade } from "#transport/websocket/upgrade.ts";
import type { RemoteStage, StageState } from "./remote-stage.ts";

const NOTHING = Buffer.alloc(0);

/** A server that is asked to switch to WebSocket, or to the bare stream, over what lies below. */
export class RemoteUpgrade implements RemoteStage {
  readonly #below: RemoteStage;
  readonly #recipe: UpgradeRecipe;
  /** Null: it has not been asked yet. */
  #asked: Upgrade | null = null;
  /** Of its answer. */
  #heard: Buffer = NOTHING;

  constructor(below: RemoteStage, recipe: UpgradeRecipe) {
    this.#below = below;
    this.#recipe = recipe;
  }

  open(fd: number): boolean {
    return this.#below.open(fd);
  }

  advance(): number | null {
    if (this.#asked !== null) return this.#listen(this.#asked);
    const opened = this.#below.advance();
    if (opened !== 0) return opened;
    this.#asked = new Upgrade(this.#recipe, this.#recipe.isFramed);
    return this.#below.say(this.#asked.head()) ? this.#listen(this.#asked) : UNDERLAY_FAILED;
  }

  #listen(asked: Upgrade): number | null {
    try {
      for (;;) {
        const bytes = this.#below.hear();
        if (bytes === null) return null;
        if (bytes.length === 0) return UNDERLAY_FAILED;
        const before = this.#heard.length;
        this.#heard = before === 0 ? bytes : Buffer.concat([this.#heard, bytes]);
        const head = decodeHead(this.#heard, before);
        if (head === null) continue;
        asked.expect(head.value);
        // It has been asked for nothing yet that it could answer behind its head.
        return head.size === this.#heard.length && this.#below.canTake ? 0 : UNDERLAY_FAILED;
      }
    } catch {
      return UNDERLAY_FAILED; // it did not switch
    }
  }

  say(bytes: Uint8Array): boolean {
    return this.#below.say(bytes);
  }

  hear(): Buffer | null {
    return this.#below.hear();
  }

  get canTake(): boolean {
    return this.#below.canTake;
  }

  take(): StageState {
    return this.#below.take();
  }

  settle(): void {
    this.#below.settle();
  }

  free(): void {
    this.#below.free();
  }
}
