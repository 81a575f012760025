# SPDX-License-Identifier: Apache-2.0
"""Writes to an address of the GPU where nothing is: an illegal memory access, of which the driver tells an Xid."""

import torch

torch.zeros(1, device="cuda")
storage = torch._C._construct_storage_from_data_pointer(0x7F0000000000, torch.device("cuda:0"), 1 << 20)
nowhere = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage, 0, (1 << 20,), (1,))
nowhere.fill_(7)
torch.cuda.synchronize()
