import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { READ_BYTES, type RemoteStage, type StageState } from "./remote-stage.ts";

/** The socket itself. */
export class RemotePlain implements RemoteStage {
  readonly canTake = true;
  readonly #owner: PendingOwner;
  #fd = -1;

  constructor(owner: PendingOwner) {
    this.#owner = owner;
  }

  open(fd: number): boolean {
    this.#fd = fd;
    return true;
  }

  advance(): number {
    return 0;
  }

  say(bytes: Uint8Array): boolean {
    const { calls } = this.#owner;
    calls.buffer.set(bytes);
    return calls.send(this.#fd, bytes.length) === bytes.length;
  }

  hear(): Buffer | null {
    const { calls } = this.#owner;
    let size: number = EINTR;
    while (size === EINTR) size = calls.receive(this.#fd, READ_BYTES);
    return size === EAGAIN ? null : Buffer.from(calls.buffer.subarray(0, Math.max(0, size)));
  }

  take(): StageState {
    return { numbers: [], unread: null };
  }

  settle(): void {}

  free(): void {}
}
