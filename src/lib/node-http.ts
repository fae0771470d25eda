/**
 * `node:http` as the program uses it. An import of that module by its name reads all that it exports, and with it loads the
 * runtime's own fetch client: 50 ms of each start and 6 MiB for what nothing here calls.
 */
import type * as http from "node:http";

export type * from "node:http";
export type Agent = http.Agent;
export type ServerResponse = http.ServerResponse;

export const {
  Agent,
  createServer,
  maxHeaderSize,
  request,
  ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule("node:http");
