/** Takes away what a program that was killed left in the kernel, for those who do not start it again. */
import { listLinks, openNetlink } from "#platform/netlink.ts";
import { removeLeftovers } from "./ebpf/ports.ts";

/**
 * Filters of a classifier, on any device: without TCX they stay, and where they redirect, what they call PROXY is lost. Not
 * while one is in force. Throws `ConfigError` or `SystemError`.
 */
export function cleanUpClassifier(): void {
  using socket = openNetlink("cleanup");
  removeLeftovers(socket, listLinks(socket));
}
