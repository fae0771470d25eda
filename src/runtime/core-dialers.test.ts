import assert from "node:assert/strict";
import { test } from "node:test";
import type { Router } from "#core/router.ts";
import { CoreDialers } from "./core-dialers.ts";

const router: Router = { route: () => Promise.reject(new Error("it is never asked")) };

test("an exit that is no proxy is an interface, unless no interface can have such a name", () => {
  const coreDialers = new CoreDialers({});
  coreDialers.bind({ outbounds: new Map(), router });
  const exit = (name: string) => coreDialers.for({ exit: name, followRules: false });
  assert.throws(() => exit("a proxy that is gone"), {
    name: "DialError",
    message: "a proxy that is gone is neither a proxy nor an interface",
  });
  if (process.platform === "linux") assert.equal(exit("eth0").kind, "direct");
});
