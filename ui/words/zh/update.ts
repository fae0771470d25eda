import type { SameKeys } from "#lib/words.ts";
import type { update as english } from "../en/update.ts";

export const update: SameKeys<typeof english> = {
  "update.title": "版本",
  "update.running": "正在运行",
  "update.check": "检查新版本",
  "update.off": "尚未配置新版本的来源：`update.url` 与 `update.public-key`。",
  "update.newer": "{version} 更新。",
  "update.same": "已是最新版本。",
  "update.older": "发布目录中是 {version}，比当前版本旧：没有更新的版本。",
  "update.unknown": "发布目录中是 {version}，无法判断是否更新。",
  "update.byHand": "在该机器上运行 `weir update` 即可更新；设置 `update.by-controller` 后可在此页面更新。",
  "update.take": "更新到 {version}",
  "update.ask": "更新程序？",
  "update.text":
    "将下载 {version}，用公钥校验后安装。它会在不断开连接的情况下接替；若未能接替，当前版本继续运行。页面会重新加载。",
  "update.failed": "未更新",
  "update.busy": "正在更新；可能需要几分钟",
  "update.done": "{version} 正在运行",
};
