/**
 * The program of a thread that reads the nodes of a proxy provider. It has a file of its own because it loads every protocol
 * for its share links, which the thread that reads lists of rules does without.
 */
import { answerEach } from "./answer.ts";
import { receivedBytes } from "./bytes.ts";
import type { NodesReply, NodesRequest } from "./messages.ts";
import { contentIn, packContent } from "./node-list.ts";
import { buffersOf } from "./packed.ts";

void answerEach<NodesRequest, NodesReply>(
  async ({ length }, pieces) => ({ content: packContent(contentIn(await receivedBytes(length, pieces))) }),
  ({ content }) => buffersOf(content.nodes),
);
