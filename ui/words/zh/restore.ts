import type { SameKeys } from "#lib/words.ts";
import type { restore as english } from "../en/restore.ts";

export const restore: SameKeys<typeof english> = {
  "restore.title": "恢复备份",
  "restore.file": "备份文件",
  "restore.key": "口令或 age 密钥（若已加密）",
  "restore.keyHint": "age 密钥请填写 AGE-SECRET-KEY-1… 那一行。它只会发送给 weir 用于读取文件，不会保存。",
  "restore.look": "查看内容",
  "restore.made": "创建时间",
  "restore.version": "创建者",
  "restore.listeners": "监听器",
  "restore.choices": "已选择的策略组",
  "restore.same": "与当前相同",
  "restore.different": "与当前不同",
  "restore.lost": "当前存在而备份中没有的内容",
  "restore.lostNothing": "用户、令牌与监听器均未缺少。",
  "restore.lostAlways":
    "备份之后的流量、审计记录与事件不在其中。当前的全部数据会以 *.before-restore-* 保留在该机器上，配置则保留为历史版本之一。",
  "restore.otherSecret": "恢复后页面会要求另一个密钥：备份配置中的密钥。",
  "restore.otherAddress": "恢复后控制器会监听另一个地址：此页面可能无法连接。",
  "restore.sure": "替换当前状态；所有连接将断开",
  "restore.other": "选择其他文件",
  "restore.put": "恢复并重启",
  "restore.restarting": "备份已就绪；weir 正在据此重启",
  "restore.open": "恢复备份…",
  "restore.entries": { other: "{count} 条" },
};
