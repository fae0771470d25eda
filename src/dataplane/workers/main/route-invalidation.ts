import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { INVALIDATE } from "#dataplane/workers/shared/relay-memory.ts";
import type { CommandObserver } from "./commands.ts";

type Post = (slot: number, command: number, observer: CommandObserver) => void;

/** Has one worker forget its cached routes. One command is under way at most, however often routing changes. */
export class RouteInvalidation {
  readonly #accepts: AcceptMemory;
  readonly #post: Post;
  #isUnderWay = false;

  constructor(accepts: AcceptMemory, post: Post) {
    this.#accepts = accepts;
    this.#post = post;
  }

  /** From this call on the worker uses no cached route of before; it drops them soon. */
  begin(): void {
    this.#accepts.nextEpoch();
    this.#send();
  }

  #send(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    const { epoch } = this.#accepts;
    const onExecuted = (): void => {
      this.#isUnderWay = false;
      if (epoch !== this.#accepts.epoch) this.#send();
    };
    this.#post(0, INVALIDATE, { onExecuted });
  }
}
