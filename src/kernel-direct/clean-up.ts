/** Removes what a killed program left in the kernel, without a new start of it. */
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
