// What experiments are grouped by, in the order of the page.
#pragma once

#include "lab/experiment.h"

namespace heddle::lab::topics {

inline const Text recurrent = {"Recurrent networks", "循环神经网络"};
inline const Text scores = {"Attention scores", "注意力打分函数"};
inline const Text heads = {"Heads and masks", "多头与掩码"};
inline const Text windows = {"Sliding windows", "滑动窗口"};
inline const Text exploration = {"What attention can compute", "注意力能算出什么"};
inline const Text positions = {"Positions", "位置编码"};
inline const Text cost = {"Cost", "计算与内存开销"};
inline const Text building_blocks = {"Building blocks", "模型部件"};
inline const Text training = {"Training", "训练"};

}  // namespace heddle::lab::topics
