import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { listenFault, messageOf } from "./errors.ts";

test("why one cannot listen is said for a person, with the system's word for it", async () => {
  const first = createServer().listen(0, "127.0.0.1");
  await once(first, "listening");
  const { port } = first.address() as AddressInfo;
  const fault = async (host: string): Promise<string> => {
    const second = createServer().listen(port, host);
    const [error] = (await once(second, "error").catch((thrown: unknown) => [thrown])) as [unknown];
    return listenFault(error);
  };
  assert.equal(await fault("127.0.0.1"), "another program listens there (EADDRINUSE)");
  assert.equal(await fault("192.0.2.1"), "no interface of this machine has this address (EADDRNOTAVAIL)");
  assert.equal(listenFault(new Error("something else")), "something else");
  first.close();
});

test("a fault in letting go does not hide the fault before it", () => {
  const refuses = (text: string): Disposable => ({
    [Symbol.dispose]() {
      throw new Error(text);
    },
  });
  const work = (): void => {
    using _first = refuses("first cannot be closed");
    using _second = refuses("second cannot be closed");
    throw new Error("no room");
  };
  try {
    work();
    assert.fail("it does not throw");
  } catch (error) {
    assert.equal(messageOf(error), "no room; second cannot be closed; first cannot be closed");
  }
});
