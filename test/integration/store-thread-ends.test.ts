/**
 * The thread that writes the state file is ended in the middle of changes: the program goes on, starts it again, and what
 * the API shows is what the file has.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AnyJson, ManagedCore, stateFolder } from "../support/managed-core.ts";

const ENDS = 3;
const KILLER = new URL("../support/kill-store.mjs", import.meta.url).href;

/** With a program that ends its store's threads when it is told to. */
async function started(store: string, folder: string): Promise<ManagedCore> {
  process.env["NODE_OPTIONS"] = `--import ${KILLER}`;
  try {
    return await ManagedCore.start({ store, folder });
  } finally {
    delete process.env["NODE_OPTIONS"];
  }
}

/** Everything that can be seen of users; nothing is counted here. */
async function seen(core: ManagedCore): Promise<string> {
  const { json } = await core.ask("GET", "/api/admin/users");
  const each = await Promise.all(json.users.map(({ id }) => core.user(id)));
  return JSON.stringify([json.inbounds, each]);
}

class Writer {
  readonly #core: ManagedCore;
  readonly #id: string;
  readonly #tag: string;
  /** The last name that was acknowledged, and those of changes since then that were not. */
  acknowledged = "";
  unknown: string[] = [];
  refused = 0;
  taken = 0;
  isOver = false;

  constructor(core: ManagedCore, tag: string, { id, name }: AnyJson) {
    this.#core = core;
    this.#id = id;
    this.#tag = tag;
    this.acknowledged = name;
  }

  async write(): Promise<void> {
    for (let at = 0; !this.isOver; at++) {
      await this.#check();
      const name = `${this.#tag} ${at}`;
      const body = { name, revision: await this.#core.revision(this.#tag) };
      const { status, text } = await this.#core.ask("PUT", `/api/admin/users/${this.#id}`, { body });
      if (status === 200) {
        this.taken++;
        this.acknowledged = name;
        this.unknown = [];
      } else {
        this.refused++;
        if (status === 500 && text.includes("in force soon, or was not made")) this.unknown.push(name);
        else if (status === 500) assert.match(text, /being opened again; nothing was changed/);
        else
          assert.equal(
            status,
            409,
            "what an error had answered has come into force between the two questions",
          );
      }
    }
  }

  /** Between two changes: while one is under way the order of the answers is not known. */
  async #check(): Promise<void> {
    const { name } = await this.#core.user(this.#id);
    assert.ok([this.acknowledged, ...this.unknown].includes(name), `${name}, not ${this.acknowledged}`);
  }
}

test(
  "a store's thread that ends under changes is started again, and nothing that was acknowledged is lost",
  { timeout: 120_000 },
  async (context) => {
    using state = stateFolder();
    let last: string;
    {
      await using core = await started(state.store, state.path);
      const writers = [
        new Writer(core, "edge", await core.create("edge", "alice")),
        new Writer(core, "side", await core.create("side", "bob")),
      ];
      let isUp = true;
      void core.core.exited.then(() => (isUp = false));
      const end = async (): Promise<void> => {
        for (let round = 1; round <= ENDS; round++) {
          process.kill(core.core.pid, "SIGWINCH");
          await core.core.shows(new RegExp(`(open again[^]*){${round}}`));
          const some = writers.map(({ taken }) => taken + 2);
          while (isUp && writers.some(({ taken }, at) => taken < (some[at] as number))) await nextTurn();
        }
        for (const writer of writers) writer.isOver = true;
      };
      // Whichever fails first is told; what the end of the program does to the others is not.
      await Promise.all([end(), ...writers.map((writer) => writer.write())]);
      context.diagnostic(
        writers.map(({ taken, refused }) => `${taken} taken, ${refused} refused`).join("; "),
      );
      last = await seen(core);
      await core.core.stop("SIGKILL");
    }
    await using again = await ManagedCore.start({ store: state.store, folder: state.path });
    assert.equal(await seen(again), last, "a start finds what the program had shown");
  },
);
