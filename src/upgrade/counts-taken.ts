/** What the old process still counts, counted here. */
import type { Host } from "#host/host.ts";
import { messageOf } from "#core/errors.ts";
import type { MessageOf } from "./messages.ts";

type Moved = readonly [upload: number, download: number];

const NONE: Moved = [0, 0];

export class CountsTaken {
  readonly #host: Host;
  /** Of each user what the old process had said last; in the beginning, what it has written. */
  readonly #users = new Map<string, Moved>();
  #totals: Moved | null = null;

  /** Before anything is counted here: the counters are as the old process has written them. */
  constructor(host: Host) {
    this.#host = host;
    for (const { listener, id, uploadBytes, downloadBytes } of host.users.totals())
      this.#users.set(keyOf(listener, id), [uploadBytes, downloadBytes]);
    this.#totals = [host.live.uploadTotalBytes, host.live.downloadTotalBytes];
  }

  /** All of it is on the medium when it resolves; answers with those of its users who may not connect. Never rejects. */
  async take({ users, policies, totals }: MessageOf<"counts">): Promise<readonly [string, string][]> {
    const { live, ledger, log } = this.#host;
    for (const [listener, id, ...moved] of users) this.#takeUser(listener, id, moved);
    for (const sums of policies) ledger.take(sums);
    const [upload, download] = this.#totals ?? NONE;
    live.count("upload", totals[0] - upload);
    live.count("download", totals[1] - download);
    this.#totals = totals;
    try {
      if (users.length > 0) await this.#host.users.flush();
      if (policies.length > 0) await this.#host.governance.flush();
    } catch (error) {
      log.warning(`what the process before has counted is not written yet: ${messageOf(error)}`);
    }
    return users.flatMap(([listener, id]): [string, string][] =>
      this.#host.users.admits(listener, id) ? [] : [[listener, id]],
    );
  }

  #takeUser(listener: string, id: string, moved: Moved): void {
    const key = keyOf(listener, id);
    // One who was not managed here in the beginning: what had been counted by then is in the file, or nowhere.
    const [upload, download] = this.#users.get(key) ?? moved;
    this.#users.set(key, moved);
    this.#host.users.count(listener, id, moved[0] - upload, moved[1] - download);
  }
}

function keyOf(listener: string, id: string): string {
  return `${listener}\0${id}`;
}
