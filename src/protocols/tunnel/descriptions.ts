/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  target: ["Where everything that comes to the listener goes, `host:port`.", "1.1.1.1:53"],
};
