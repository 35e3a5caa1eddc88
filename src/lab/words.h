// What the pages of the lab say around the experiments, in both languages.
#pragma once

#include "lab/experiment.h"

namespace heddle::lab::said {

inline const Text lab = {"The lab: the theory, run", "实验室：把理论跑一遍"};
inline const Text about = {
    "Every claim below comes from study notes on recurrent networks, attention and Transformers. "
    "Some of those claims are wrong. Each experiment measures, with Heddle's own layers in float64 "
    "where they exist, and its verdict follows from the numbers of this run. The notes are "
    "numbered "
    "documents 000 to 004; what they are is said under “The documents”.",
    "下面的每个论断都来自关于循环网络、注意力和 Transformer 的学习笔记，其中一些是错的。"
    "每个实验都用 Heddle 自己的层（只要有对应的层，就用 "
    "float64）实际测量，结论由本次运行得到的数字决定。"
    "这些笔记编号为文档 000 至 004，其内容见“来源文档”一节。"};
inline const Text documents_title = {"The documents", "来源文档"};
inline const Text documents = {
    "000: homework answers on RNN language models, attention scores, heads and sliding windows. "
    "001 and 003: answers on what attention can compute, with one head and with two. "
    "002: a lecture on attention and Transformers. 004: notes on the whole Transformer.",
    "000：关于 RNN 语言模型、注意力打分、多头和滑动窗口的作业解答。"
    "001 与 003：关于单头与双头注意力能算出什么的解答。"
    "002：注意力与 Transformer 课程笔记。004：Transformer 全面笔记。"};
inline const Text usage = {
    "`heddle lab list` shows the experiments, `heddle lab NAME...` runs some, `heddle lab all` "
    "those "
    "that take seconds, with `--slow` the others too. `--out page.html` draws a page with a figure "
    "for each, `--plant FAULT` makes the measurement of one experiment go wrong in a way that it "
    "must notice, `--lang zh` speaks Chinese, `--json` prints `{\"experiments\": [{name, claim, "
    "verdict, expected, pass, numbers, checks, seconds}]}`. The status is 1 when a measured "
    "verdict "
    "differs from the stated one. This page was written by `heddle lab all --slow --markdown "
    "docs/lab.md`.",
    "`heddle lab list` 列出实验，`heddle lab NAME...` 运行指定实验，`heddle lab all` 运行所有几秒内"
    "完成的实验，加 `--slow` 连同较慢的一起运行。`--out page.html` 生成带图的网页，`--plant FAULT` "
    "故意让一个实验测错一处（它必须察觉），`--lang zh` 使用中文，`--json` 输出 "
    "JSON。若测得的结论与预期不同，退出码为 1。本页由 `heddle lab all --slow --lang zh --markdown` "
    "生成。"};
inline const Text claim = {"Claim", "论断"};
inline const Text source = {"Source", "出处"};
inline const Text method = {"Method", "方法"};
inline const Text threshold = {"Threshold", "判据"};
inline const Text numbers = {"Numbers", "数字"};
inline const Text measured = {"Measured", "测得"};
inline const Text quantity = {"Quantity", "量"};
inline const Text key = {"Key", "键"};
inline const Text condition = {"Condition", "条件"};
inline const Text required = {"Compared with", "比较"};
inline const Text met = {"True", "是否满足"};
inline const Text yes = {"yes", "是"};
inline const Text no = {"no", "否"};
inline const Text verdict = {"Verdict", "结论"};
inline const Text stated = {"Stated", "预期"};
inline const Text differs = {"differs from the stated verdict", "与预期结论不符"};
inline const Text failed = {"did not come to an end", "未能完成"};
inline const Text because = {"Because", "原因"};
inline const Text experiment = {"Experiment", "实验"};
inline const Text planted = {"Planted", "植入错误"};
inline const Text faults = {"Faults", "可植入"};
inline const Text slow = {"slow", "较慢"};
inline const Text seconds = {"Seconds", "秒"};

}  // namespace heddle::lab::said
