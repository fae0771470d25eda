/** Fake addresses while one process takes over from another: each stands for one name, in both. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { FrameReader, frameOf } from "#dns/frames.ts";
import { decodeMessage } from "#dns/message.ts";
import { addressesIn, askUdp, questionOf } from "../support/dns-client.ts";
import { FailingLaunchers } from "../support/failing-launchers.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { repeat } from "../support/program-load.ts";
import { socksConnect } from "../support/socks-client.ts";
import { openUpgradedCore } from "../support/upgraded-core.ts";

const skip = process.platform === "linux" ? false : "SKIP upgrade: needs Linux";

const config = (dns: number, mixed: number, store: boolean) => `
mixed-port: ${mixed}
profile: { store-fake-ip: ${store} }
dns:
  enable: true
  listen: 127.0.0.1:${dns}
  enhanced-mode: fake-ip
  use-hosts: false
  fake-ip-range: 198.18.0.1/16
  nameserver: [127.0.0.1:1]
hosts: { "+.known.test": 127.0.0.1 }
rules: ["MATCH,DIRECT"]
`;

/** A connection of a client that asks one question at a time, and stays. */
class Asker implements Disposable {
  readonly #socket: Socket;
  #onAnswer: (ip: Ip | undefined) => void = () => {};
  #onClosed: (error: Error) => void = () => {};

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1").on("error", () => {});
    this.#socket.once("close", () => this.#onClosed(new Error("it was closed")));
    const frames = new FrameReader(
      (message) => this.#onAnswer(addressesIn(decodeMessage(message))[0]),
      () => false,
    );
    this.#socket.on("data", (chunk: Buffer) => frames.push(chunk));
  }

  ask(name: string): Promise<Ip | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Ip | undefined>();
    this.#onAnswer = resolve;
    this.#onClosed = reject;
    this.#socket.write(frameOf(questionOf(name)));
    return promise;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** What was answered: each name has one address, and each address one name. */
class Answers {
  readonly names = new Map<string, Ip>();
  readonly faults: string[] = [];
  readonly #byIp = new Map<Ip, string>();

  take(name: string, ip: Ip | undefined): void {
    if (ip === undefined) return void this.faults.push(`${name} has no address`);
    const [before, other] = [this.names.get(name), this.#byIp.get(ip)];
    if (before !== undefined && before !== ip) this.faults.push(`${name} is ${before} and ${ip}`);
    if (other !== undefined && other !== name) this.faults.push(`${ip} stands for ${other} and ${name}`);
    this.names.set(name, ip);
    this.#byIp.set(ip, name);
  }
}

for (const store of [true, false])
  test(
    `each name keeps its address and each address its name, store-fake-ip: ${store}`,
    { skip },
    async () => {
      using launchers = new FailingLaunchers();
      await using origin = await openTcpOrigin(echo);
      const [dns, mixed] = (await freePorts(2)) as [number, number];
      await using upgraded = await openUpgradedCore(config(dns, mixed, store), []);
      const answers = new Answers();
      const load = Array.from({ length: 4 }, (_, lane) => {
        let at = 0;
        return repeat(`lane ${lane}`, 2, async () => {
          const name = `n${at++}.lane${lane}.test`;
          answers.take(name, addressesIn(await askUdp(dns, name))[0]);
        });
      });
      const askers: Asker[] = [];
      using _askers = { [Symbol.dispose]: () => askers.forEach((asker) => asker[Symbol.dispose]()) };
      const askAll = async (round: string): Promise<void> => {
        const names = askers.map((_, at) => `${round}-${at}.kept.test`);
        for (const [at, asker] of askers.entries())
          answers.take(names[at] ?? "", await asker.ask(names[at] ?? ""));
        for (const name of names) answers.take(name, addressesIn(await askUdp(dns, name))[0]);
      };
      for (const round of ["one", "two", "three"]) {
        askers.push(new Asker(dns)); // stays with the process that it has reached
        await askAll(`before ${round}`);
        answers.take("open.known.test", await askers[0]?.ask("open.known.test"));
        await assert.rejects(upgraded.upgrade(launchers.path("go")), /ended with SIGKILL/);
        await askAll(`failed ${round}`);
        await upgraded.upgrade();
        await askAll(`behind ${round}`);
      }
      for (const lane of load) await lane[Symbol.asyncDispose]();
      assert.deepEqual(
        load.flatMap(({ faults }) => faults),
        [],
      );
      for (const name of answers.names.keys()) answers.take(name, addressesIn(await askUdp(dns, name))[0]);
      assert.deepEqual(answers.faults, []);
      assert.ok(answers.names.size > 100, `${answers.names.size} names`);
      const fake = answers.names.get("open.known.test") ?? "";
      assert.match(fake, /^198\.18\./);
      const { client, status } = await socksConnect(mixed, fake, origin.port);
      using speaking = client;
      assert.equal(status, 0);
      speaking.send("by its name");
      await speaking.until("by its name");
    },
  );
