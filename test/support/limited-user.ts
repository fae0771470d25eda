/** A managed user with limits, and another one of another listener whom they must not touch. */
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import type { Meter } from "#core/meter.ts";
import type { Session } from "#core/session.ts";
import type { LimitsChange, UserDetailView } from "#core/users.ts";
import { Bench, type FakeInbound, listener, metadataOf } from "./users-bench.ts";

export const OPEN: Meter = {
  pieceBytes: 1 << 20,
  reserve: () => 0,
  trySend: () => 0,
  adjust() {},
  admit: () => true,
  [Symbol.dispose]() {},
};
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** `edge` with one user, and `side` with another who must never notice. */
export class LimitedUser extends Bench {
  id = "";

  static async open(): Promise<LimitedUser> {
    const bench = new LimitedUser();
    await bench.adopt([listener("edge", "alice"), listener("side", "bob")]);
    bench.id = bench.admin.users("edge")[0]?.id as string;
    return bench;
  }

  get edge(): FakeInbound {
    return this.inbounds[0] as FakeInbound;
  }
  get side(): FakeInbound {
    return this.inbounds[1] as FakeInbound;
  }
  limit(limits: LimitsChange): Promise<UserDetailView> {
    return this.admin.update(this.id, { revision: this.revision("edge"), limits });
  }
  get user(): UserDetailView {
    return this.admin.user(this.id) as UserDetailView;
  }
  /** Later; what looks after the limits has had its turn. */
  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    this.monotonicMs += Math.max(0, ms);
    await this.users.watchLimits();
  }
  /** What the listener and the view say: the two must agree. */
  get status(): string {
    const { status } = this.user;
    assert.equal(this.edge.users.length, status === "active" ? 1 : 0);
    assert.equal(this.side.calls, 1, "the other listener gets no change");
    return status;
  }
  meter(): Meter {
    return this.meterOf(this.id, OPEN);
  }
  session(from = "10.0.0.1"): Session & { readonly stream: PassThrough } {
    const stream = new PassThrough();
    stream.on("error", () => {});
    const metadata = { ...metadataOf("edge", this.id), source: { ip: from, port: 1 } } as never;
    return { network: "tcp", metadata, stream, reply() {} };
  }
  enter(from?: string): (() => void) | string {
    const passed = this.users.enter(this.session(from));
    return typeof passed === "string" ? passed : passed.leave;
  }
}

export const refusal = (entry: (() => void) | string): string =>
  typeof entry === "string" ? entry : assert.fail("it was let in");
